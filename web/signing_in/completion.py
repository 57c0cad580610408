"""Completes a sign-in or a change of second factors, and leads to a due change of password."""

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import unquote

from flask import Flask, flash, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user

from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.signing_in import actions as signing_in
from domain.accounts.signing_in.sessions import Authentication, renew_sign_in
from domain.accounts.users import find_user_to_sign_in
from web.access.marks import get_current_user, load_current_user
from web.access.second_factor_rule import must_set_up_second_factor
from web.extensions import db
from web.http.endpoints import find_endpoint, page_blueprints
from web.http.public_urls import current_path
from web.http.work import work
from web.sealing.session_secrets import keep_secret, take_secret
from web.sealing.sign_ins import begin_pending_sign_in
from web.services import services, settings
from web.signing_in.attempts import remember_browser

_SESSION_KEY = "recovery_codes"
_KEPT_PAGE = "kept_page"
#: Browsers drop a cookie of four kilobytes, and the session has more in it.
_LONGEST_KEPT_PAGE = 2_000


def complete(authentication: Authentication, next_page: str = "") -> ResponseReturnValue:
    """Sign in who has no second factor, or had it checked elsewhere; lead others to it."""
    user_id = authentication.user_id
    is_enough = "mfa" in authentication.methods
    user = None if is_enough else find_user_to_sign_in(user_id, session=db.session())
    if user is not None and has_second_factor(user_id, session=db.session()):
        begin_pending_sign_in(user, authentication)
        return redirect(url_for("two_factor.enter", next=next_page or requested_page() or None))
    return sign_in_as(authentication, next_page)


def sign_in_as(authentication: Authentication, next_page: str = "") -> ResponseReturnValue:
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
    return redirect(next_page or next_url())


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


def keep_page(path: str) -> None:
    """Keep the page of this service that is shown after what has to come first."""
    session[_KEPT_PAGE] = path if len(path) <= _LONGEST_KEPT_PAGE else ""


def kept_page() -> str:
    """Return the kept page, or an empty string."""
    kept: str = session.get(_KEPT_PAGE, "")
    return kept


def take_page() -> str:
    """Return and forget the page that is next: the kept one, or the settings of security."""
    kept = kept_page()
    session.pop(_KEPT_PAGE, None)
    return kept or url_for("account.security")


def finish_adding_factor(name: str, codes: Sequence[str]) -> ResponseReturnValue:
    """Confirm a new second factor; the first one has recovery codes."""
    renew_this_sign_in()
    if codes:
        return to_recovery_codes(codes)
    flash(f"The {name} is ready: use it when you sign in.")
    return redirect(take_page())


def to_recovery_codes(codes: Sequence[str]) -> ResponseReturnValue:
    """Redirect to the page that shows new codes once."""
    keep_secret(_SESSION_KEY, " ".join(codes))
    return redirect(url_for("second_factors.show_recovery_codes"))


def take_recovery_codes() -> list[str]:
    """Return the codes that were just issued, once."""
    return (take_secret(_SESSION_KEY) or "").split()


def lead_to_setup(app: Flask) -> None:
    """Redirect who has to change a password, or to set up a second factor, to where they can.

    The pages for that, and those to sign out, stay open.
    """
    for name in page_blueprints(app):
        app.before_request_funcs.setdefault(name, []).append(_lead_to_choice)


def _lead_to_choice() -> ResponseReturnValue | None:
    endpoint = find_endpoint()
    is_open = endpoint is not None and endpoint.open_before_password_change
    if is_open or not current_user.is_authenticated:
        return None
    if current_user.user.must_change_password:
        return lead_to_security()
    is_for_setup = endpoint is not None and endpoint.open_before_second_factor
    if not is_for_setup and must_set_up_second_factor():
        return lead_to_security()
    return None


def lead_to_security() -> ResponseReturnValue:
    """Redirect to where the signed-in user sets up what is missing, and keep the asked page."""
    if request.method == "GET":
        keep_page(current_path())
    return redirect(url_for("account.security"))
