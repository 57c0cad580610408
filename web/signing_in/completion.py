"""The end of every way in: a sign-in is opened, and the browser goes on to where it wanted."""

from datetime import timedelta
from urllib.parse import unquote

from flask import redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user

from domain.accounts.signing_in.sessions import Browser, Proof, close_sign_in, open_sign_in
from domain.audit.events import Event, EventKind
from web.extensions import db
from web.http.access import load_visitor, visitor
from web.http.audit import note
from web.services import now, services, settings
from web.signing_in.known_browsers import remember_browser


def sign_in_as(proof: Proof) -> ResponseReturnValue:
    """Open a sign-in for who has proved who they are, and lead them on."""
    token = open_sign_in(
        proof,
        Browser(address=request.remote_addr, user_agent=request.user_agent.string),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        lifetime=timedelta(seconds=settings().session_lifetime_seconds),
    )
    if current_user.is_authenticated:  # a browser has one at a time
        close_sign_in(visitor().sign_in_id, session=db.session())
    remember_browser(proof.user.id)
    # Nothing of the session before survives: what was fixed in it is worthless.
    session.clear()
    db.session.flush()  # so that the new sign-in can be loaded
    login_user(load_visitor(token))
    session.permanent = True
    methods = list(proof.methods)
    note(Event(kind=EventKind.SIGNED_IN, user_id=proof.user.id, details={"methods": methods}))
    return redirect(way_on())


def way_on() -> str:
    """Return where the visitor wanted to go, if that is here; else the first page."""
    return wanted_page() or url_for("home.index")


def wanted_page() -> str:
    """Return the page of ours that led here, or nothing."""
    target = request.args.get("next", "")
    # Browsers drop tabs and newlines, take a backslash for a slash, and go up at two dots.
    path = unquote(target.partition("?")[0]).replace("\\", "/")
    is_ours = target.startswith(url_for("home.index")) and not path.startswith("//")
    return target if is_ours and "/.." not in path and target.isprintable() else ""
