"""Sign in and sign out."""

from datetime import timedelta
from urllib.parse import parse_qs

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user, logout_user

from domain.accounts.sign_ins import Browser, close_sign_in, open_sign_in
from domain.accounts.users import authenticate
from domain.errors import TooManyAttemptsError
from domain.oauth.applications import find_by_uid
from forms.sign_in import SignInForm
from web.access import load_visitor, open_to_anyone, signed_in, visitor
from web.extensions import db
from web.knocks import knock_of
from web.services import now, services, settings

sessions = Blueprint("sessions", __name__, url_prefix="/users")

WRONG = "That user name or password is not right."


@sessions.get("/sign_in")
@open_to_anyone
def sign_in() -> ResponseReturnValue:
    """Show the form."""
    if current_user.is_authenticated:
        return redirect(_way_on())
    form = SignInForm(formdata=None, login=_login_hint())
    return _page(form)


@sessions.post("/sign_in")
@open_to_anyone
def check_in() -> ResponseReturnValue:
    """Check who it is, and go on to where they wanted."""
    form = SignInForm()
    if not form.validate_on_submit():
        return _page(form), 422
    knock = knock_of(form.login.data or "", form.password.data or "")
    try:
        user = authenticate(knock, session=db.session(), keyring=services().keyring, now=now())
    except TooManyAttemptsError as error:
        form.object_to("password", str(error))
        return _page(form), 429, {"Retry-After": str(error.retry_after)}
    if user is None:
        form.object_to("password", WRONG)
        return _page(form), 422
    browser = Browser(address=request.remote_addr, user_agent=request.user_agent.string)
    token = open_sign_in(
        user,
        browser,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        lifetime=timedelta(seconds=settings().session_lifetime_seconds),
    )
    return _begin_session(token)


def _begin_session(token: str) -> ResponseReturnValue:
    # Nothing of the session before survives: what was fixed in it is worthless.
    session.clear()
    db.session.flush()  # so that the new sign-in can be loaded
    login_user(load_visitor(token))
    session.permanent = True
    return redirect(_way_on())


@sessions.post("/sign_out")
@signed_in
def sign_out() -> ResponseReturnValue:
    """End this browser's sign-in, here and in the database; another may follow it."""
    close_sign_in(visitor().sign_in_id, session=db.session())
    logout_user()
    session.clear()
    flash("You are signed out.")
    return redirect(url_for("sessions.sign_in", next=request.values.get("next")))


def _way_on() -> str:
    """Return where the visitor wanted to go, if that is here; else the first page."""
    return _wanted() or url_for("home.index")


def _wanted() -> str:
    """Return the page of ours that led here, or nothing."""
    target = request.args.get("next", "")
    # Browsers drop tabs and newlines, and take a backslash for a slash.
    is_path = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_path and target.isprintable() else ""


def _asking() -> dict[str, list[str]]:
    """Return the parameters of the authorization request that led here, if one did."""
    path, _, query = _wanted().partition("?")
    return parse_qs(query) if path == url_for("authorize.consent") else {}


def _login_hint() -> str:
    return _asking().get("login_hint", [""])[0][:255]


def _page(form: SignInForm) -> str:
    uid = _asking().get("client_id", [""])[0].replace("\x00", "")
    application = find_by_uid(uid, session=db.session()) if uid else None
    return render_template(
        "sessions/sign_in.html",
        form=form,
        application_name=application.name if application else None,
    )
