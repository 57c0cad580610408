"""Sign-in attempts, their completion, and redirects to and from identity providers.

Attempts are limited by account and by address, or by a device cookie. Because of the cookie,
guesses from elsewhere do not lock out browsers that have signed in before. The scheme is OWASP's
"Slow Down Online Guessing Attacks with Device Cookies". The signed cookie holds a random id for
each account that has signed in. It grants no access and outlives the sign-in. Attempts from such a
browser are counted by that id. All other attempts are counted together.

The session stores a request to an identity provider for ten minutes and for one response.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import unquote

from flask import (
    Response,
    after_this_request,
    current_app,
    flash,
    g,
    redirect,
    request,
    session,
    url_for,
)
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user

from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.identity_providers.signing_in import Asked, begin
from domain.accounts.signing_in import actions as signing_in
from domain.accounts.signing_in.sessions import Authentication, renew_sign_in
from domain.accounts.users import SignInAttempt, find_user_to_sign_in
from domain.core.randomness import random_hex
from web.access.decorators import get_current_user, load_current_user
from web.access.kept_pages import short_address
from web.access.second_factor_rule import must_set_up_second_factor
from web.extensions import db
from web.http.cookies import cookie_name
from web.http.endpoints import find_endpoint
from web.http.public_urls import current_path
from web.http.work import work
from web.sealing.sealer import BrokenSealError, keep_secret, seal, take_secret, unseal
from web.sealing.sign_ins import begin_pending_sign_in
from web.services import now, services, settings, sign_in_limits

_NAME = "gatebell_browser"
_PURPOSE = "known browser"
_LIFETIME = timedelta(days=366)
#: Maximum number of accounts in a cookie. The accounts with the latest sign-ins are kept.
_MOST_ACCOUNTS = 8


def known_accounts() -> dict[int, str]:
    """Return the device ids of this browser by account id."""
    if "known_accounts" not in g:
        g.known_accounts = _read(request.cookies.get(_cookie_name(), ""))
    found: dict[int, str] = g.known_accounts
    return found


def remember_browser(user_id: int) -> None:
    """Set the cookie with a device id for an account that has just signed in."""
    device_ids = known_accounts()
    # The order is by latest sign-in; the oldest entry is dropped.
    device_ids[user_id] = device_ids.pop(user_id, "") or random_hex(16)
    latest = dict(list(device_ids.items())[-_MOST_ACCOUNTS:])
    sealed = seal(list(latest.items()), purpose=_PURPOSE)

    def put(response: Response) -> Response:
        response.set_cookie(
            _cookie_name(),
            sealed,
            max_age=_LIFETIME,
            path=current_app.session_interface.get_cookie_path(current_app),
            secure=current_app.config["SESSION_COOKIE_SECURE"],
            httponly=True,
            samesite="Lax",
        )
        return response

    after_this_request(put)


def _cookie_name() -> str:
    return cookie_name(_NAME, settings().base_url)


def _read(sealed: str) -> dict[int, str]:
    """Return the content of the cookie, or an empty dictionary if the cookie is invalid."""
    try:
        return dict(unseal(sealed, purpose=_PURPOSE, lifetime=_LIFETIME))
    except BrokenSealError:
        return {}


def sign_in_attempt(login: str, password: str) -> SignInAttempt:
    """Return a sign-in attempt with the limits for this request's address and browser."""
    return sign_in_limits().attempt(
        login, password, address=request.remote_addr, device_ids=known_accounts()
    )


_SESSION_KEY = "recovery_codes"
_KEPT_PAGE = "kept_page"


def complete(authentication: Authentication, next_page: str = "") -> ResponseReturnValue:
    """Complete a sign-in, or redirect to the second factor if one still has to be checked."""
    user_id = authentication.user_id
    is_enough = "mfa" in authentication.methods
    user = None if is_enough else find_user_to_sign_in(user_id, session=db.session())
    if user is not None and has_second_factor(user_id, session=db.session()):
        begin_pending_sign_in(user, authentication)
        return redirect(url_for("two_factor.enter", next=next_page or requested_page() or None))
    return sign_in_as(authentication, next_page)


def sign_in_as(authentication: Authentication, next_page: str = "") -> ResponseReturnValue:
    """Create a sign-in for an authenticated user and redirect to the requested page."""
    lifetime = timedelta(seconds=settings().session_lifetime_seconds)
    # A browser has one sign-in at a time.
    former_id = get_current_user().sign_in_id if current_user.is_authenticated else None
    token = signing_in.sign_in(work(), authentication, lifetime, former_id=former_id)
    remember_browser(authentication.user_id)
    # Discard the old session to prevent session fixation.
    session.clear()
    db.session.flush()  # so that the new sign-in can be loaded
    login_user(load_current_user(token))
    session.permanent = True
    return redirect(next_page or next_url())


def renew_this_sign_in() -> None:
    """Renew this browser's sign-in cookie after a change of the user's credentials.

    All other browsers are signed out, including any that use a copy of the cookie. Raise
    ConflictError if this browser was signed out in the meantime.
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
    return own_page(request.values.get("next", ""))


def own_page(target: str) -> str:
    """Return the address if it belongs to this service, or an empty string."""
    # Browsers drop tabs and newlines, treat a backslash as a slash, and resolve "..".
    path = unquote(target.partition("?")[0]).replace("\\", "/")
    is_ours = target.startswith(url_for("home.index")) and not path.startswith("//")
    return target if is_ours and "/.." not in path and target.isprintable() else ""


def keep_page(path: str) -> None:
    """Store the page to show after a required step, such as a password change."""
    # Browsers drop cookies over four kilobytes, and the session contains other data as well.
    session[_KEPT_PAGE] = short_address(path)


def kept_page() -> str:
    """Return the stored page, or an empty string."""
    kept: str = session.get(_KEPT_PAGE, "")
    return kept


def take_page() -> str:
    """Return and forget the stored page, or return the security settings if there is none."""
    kept = kept_page()
    session.pop(_KEPT_PAGE, None)
    return kept or url_for("account.security")


def finish_adding_factor(name: str, codes: Sequence[str]) -> ResponseReturnValue:
    """Confirm a new second factor, and show recovery codes if it is the first one."""
    renew_this_sign_in()
    if codes:
        return to_recovery_codes(codes)
    flash(f"The {name} was added. Use it when you sign in.")
    return redirect(take_page())


def to_recovery_codes(codes: Sequence[str]) -> ResponseReturnValue:
    """Redirect to the page that shows new recovery codes once."""
    keep_secret(_SESSION_KEY, " ".join(codes))
    return redirect(url_for("second_factors.show_recovery_codes"))


def take_recovery_codes() -> list[str]:
    """Return the newly issued codes; later calls return an empty list."""
    return (take_secret(_SESSION_KEY) or "").split()


def lead_to_setup() -> ResponseReturnValue | None:
    """Redirect users who must change their password or set up a second factor.

    The pages for these steps and for signing out stay open.
    """
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
    """Redirect to the page where the user sets up what is missing, and store the requested page."""
    if request.method == "GET":
        keep_page(current_path())
    return redirect(url_for("account.security"))


_KEY = "asked_provider"


def send_to_provider(slug: str, *, next_page: str, connects: bool) -> ResponseReturnValue:
    """Redirect to an identity provider; after sign-in, the user returns to the given page.

    Signed-in users have to sign in again there. Raise ProviderError if the request cannot start.
    """
    mine = get_current_user().sign_in_id if current_user.is_authenticated else None
    asked = Asked(
        number=random_hex(32),
        slug=slug,
        asked_at=now(),
        is_again=mine is not None and not connects,
        sign_in_id=mine if connects else None,
    )
    url = begin(work(), asked)
    session[_KEY] = {
        "number": asked.number,
        "slug": slug,
        "asked_at": asked.asked_at.isoformat(),
        "is_again": asked.is_again,
        "sign_in_id": asked.sign_in_id,
        "next": short_address(next_page),
    }
    response = redirect(url)
    response.headers["Cache-Control"] = "no-store"  # the URL contains a state
    return response


def take_asked(slug: str) -> tuple[Asked, str]:
    """Return this browser's pending provider request and the page to show afterwards.

    The request can be taken once. If there is none, the returned request matches no response.
    """
    kept = session.pop(_KEY, {})
    mine = get_current_user().sign_in_id if current_user.is_authenticated else None
    connects_for = kept.get("sign_in_id")
    is_ours = kept.get("slug") == slug and connects_for in (None, mine)
    asked = Asked(
        number=kept["number"] if is_ours else random_hex(32),
        slug=slug,
        asked_at=datetime.fromisoformat(kept["asked_at"]) if is_ours else now(),
        is_again=bool(kept.get("is_again")),
        sign_in_id=connects_for if is_ours else None,
    )
    return asked, kept.get("next", "") if is_ours else ""
