"""Completes a sign-in and redirects to the requested page."""

from datetime import timedelta
from urllib.parse import unquote

from flask import redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user

from domain.accounts.signing_in import actions as signing_in
from domain.accounts.signing_in.sessions import Authentication, renew_sign_in
from web.access.marks import get_current_user, load_current_user
from web.extensions import db
from web.http.work import work
from web.services import services, settings
from web.signing_in.known_browsers import remember_browser


def sign_in_as(authentication: Authentication) -> ResponseReturnValue:
    """Open a sign-in for an authenticated user, and redirect to the requested page."""
    lifetime = timedelta(seconds=settings().session_lifetime_seconds)
    # A browser has one at a time.
    former_id = get_current_user().sign_in_id if current_user.is_authenticated else None
    token = signing_in.sign_in(work(), authentication, lifetime, former_id=former_id)
    remember_browser(authentication.user_id)
    # The old session is discarded, against session fixation.
    session.clear()
    db.session.flush()  # so that the new sign-in can be loaded
    login_user(load_current_user(token))
    session.permanent = True
    return redirect(next_url())


def renew_this_sign_in() -> None:
    """Renew the cookie of this browser, after a change of what its user signs in with.

    Whoever has copied the cookie is signed out by that, as all other browsers are. Raises
    ConflictError if this browser was signed out meanwhile.
    """
    token = renew_sign_in(
        get_current_user().get_id(), session=db.session(), keyring=services().keyring
    )
    login_user(load_current_user(token))


def next_url() -> str:
    """Return the requested page of this service, or the home page."""
    return requested_page() or url_for("home.index")


def requested_page() -> str:
    """Return the page of this service in the parameter `next`, or an empty string."""
    target = request.args.get("next", "")
    # Browsers drop tabs and newlines, treat a backslash as a slash, and resolve two dots.
    path = unquote(target.partition("?")[0]).replace("\\", "/")
    is_ours = target.startswith(url_for("home.index")) and not path.startswith("//")
    return target if is_ours and "/.." not in path and target.isprintable() else ""
