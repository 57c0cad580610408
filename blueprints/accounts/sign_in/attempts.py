"""Sign-in attempts, their completion, and redirects to and from identity providers.

If an account has signed in from a browser before, its attempts from that browser are counted by a
device cookie. All other attempts are counted by account and by IP address. Guesses from elsewhere
therefore do not lock out browsers that have signed in before. The scheme is OWASP's "Slow Down
Online Guessing Attacks with Device Cookies". The signed cookie contains a random ID for each
account that has signed in. The cookie grants no access and outlives the sign-in.

The session stores each request to an identity provider for ten minutes. A request can be completed
only once.
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
from domain.accounts.identity_providers.sign_in import ProviderRequest, start_provider_request
from domain.accounts.sign_in import actions as sign_in_actions
from domain.accounts.sign_in.sessions import Authentication, renew_sign_in
from domain.accounts.users import SignInAttempt, find_sign_in_user
from domain.core.randomness import generate_random_hex
from web.access.decorators import get_current_user, load_current_user
from web.access.return_urls import shorten_return_url
from web.access.second_factor_requirements import find_due_second_factor_requirement
from web.extensions import db
from web.http.browser_zone import get_browser_zone
from web.http.cookies import build_cookie_name
from web.http.endpoints import find_endpoint
from web.http.public_urls import get_current_path_and_query
from web.http.unit_of_work import get_unit_of_work
from web.sealing.pending_sign_ins import begin_pending_sign_in
from web.sealing.sealed_values import (
    BrokenSealError,
    seal_value,
    store_secret,
    take_secret,
    unseal_text,
)
from web.services import get_current_time, get_services, get_settings, get_sign_in_limits

_COOKIE_NAME = "gatebell_browser"
_COOKIE_PURPOSE = "known browser"
_COOKIE_LIFETIME = timedelta(days=366)
#: Maximum number of accounts in a cookie. Accounts with the most recent sign-ins are kept.
_MAX_ACCOUNTS = 8


def get_device_ids() -> dict[int, str]:
    """Return the device IDs of this browser by account ID."""
    if "known_accounts" not in g:
        g.known_accounts = _read_cookie(request.cookies.get(_build_cookie_name(), ""))
    found: dict[int, str] = g.known_accounts
    return found


def store_browser_cookie(user_id: int) -> None:
    """Set the cookie with a device ID for an account that has just signed in."""
    device_ids = get_device_ids()
    # Entries are ordered by their latest sign-in. The oldest entry is dropped.
    device_ids[user_id] = device_ids.pop(user_id, "") or generate_random_hex(16)
    latest = dict(list(device_ids.items())[-_MAX_ACCOUNTS:])
    sealed = seal_value(list(latest.items()), purpose=_COOKIE_PURPOSE)

    def set_browser_cookie(response: Response) -> Response:
        response.set_cookie(
            _build_cookie_name(),
            sealed,
            max_age=_COOKIE_LIFETIME,
            path=current_app.session_interface.get_cookie_path(current_app),
            secure=current_app.config["SESSION_COOKIE_SECURE"],
            httponly=True,
            samesite="Lax",
        )
        return response

    after_this_request(set_browser_cookie)


def _build_cookie_name() -> str:
    return build_cookie_name(_COOKIE_NAME, get_settings().base_url)


def _read_cookie(sealed_text: str) -> dict[int, str]:
    """Return the device IDs in the cookie, keyed by account ID.

    Return an empty dictionary if the cookie is invalid.
    """
    try:
        return dict(unseal_text(sealed_text, purpose=_COOKIE_PURPOSE, lifetime=_COOKIE_LIFETIME))
    except BrokenSealError:
        return {}


def build_sign_in_attempt(login: str, password: str) -> SignInAttempt:
    """Return a sign-in attempt with the limits for this request's address and browser."""
    return get_sign_in_limits().build_attempt(
        login, password, address=request.remote_addr, device_ids=get_device_ids()
    )


_RECOVERY_CODES_KEY = "recovery_codes"
_RETURN_URL_KEY = "kept_page"


def complete_sign_in(authentication: Authentication, next_page: str = "") -> ResponseReturnValue:
    """Complete a sign-in, or redirect to the second-factor check if it is still required."""
    user_id = authentication.user_id
    is_enough = "mfa" in authentication.methods
    user = None if is_enough else find_sign_in_user(user_id, session=db.session())
    if user is not None and has_second_factor(user_id, session=db.session()):
        begin_pending_sign_in(user, authentication)
        return redirect(url_for("two_factor.enter", next=next_page or get_requested_page() or None))
    return create_sign_in_and_redirect(authentication, next_page)


def create_sign_in_and_redirect(
    authentication: Authentication, next_page: str = ""
) -> ResponseReturnValue:
    """Create a sign-in for an authenticated user and redirect to the requested page."""
    lifetime = timedelta(seconds=get_settings().session_lifetime_seconds)
    # A browser has one sign-in at a time.
    former_id = get_current_user().sign_in_id if current_user.is_authenticated else None
    token = sign_in_actions.sign_in(
        get_unit_of_work(),
        authentication,
        lifetime,
        former_id=former_id,
        browser_zone=get_browser_zone(),
    )
    store_browser_cookie(authentication.user_id)
    # Discard the old session to prevent session fixation.
    session.clear()
    db.session.flush()  # The new sign-in can only be loaded after its row has been inserted.
    login_user(load_current_user(token))
    session.permanent = True
    return redirect(next_page or get_next_url())


def renew_current_sign_in() -> None:
    """Renew this browser's sign-in cookie after the user's credentials have changed.

    Copies of the previous cookie stop working. The user's other sign-ins are not affected. Raise
    ConflictError if this browser was signed out in the meantime.
    """
    token = renew_sign_in(
        get_current_user().get_id(), session=db.session(), keyring=get_services().keyring
    )
    login_user(load_current_user(token))


def get_next_url() -> str:
    """Return the URL of the requested page, or of the home page if no page was requested."""
    return get_requested_page() or url_for("home.index")


def get_requested_page() -> str:
    """Return the URL in the `next` parameter if it belongs to this service, or an empty string."""
    return filter_local_url(request.values.get("next", ""))


def filter_local_url(target: str) -> str:
    """Return the URL if it belongs to this service, or an empty string."""
    # Browsers drop tabs and newlines, treat a backslash as a slash, and resolve "..".
    path = unquote(target.partition("?")[0]).replace("\\", "/")
    is_ours = target.startswith(url_for("home.index")) and not path.startswith("//")
    return target if is_ours and "/.." not in path and target.isprintable() else ""


def remember_return_url(path: str) -> None:
    """Store the URL of the page to show after a required step, such as a password change."""
    # Browsers drop cookies over four kilobytes, and the session contains other data as well.
    session[_RETURN_URL_KEY] = shorten_return_url(path)


def get_return_url() -> str:
    """Return the URL of the stored page, or an empty string if no page is stored."""
    kept: str = session.get(_RETURN_URL_KEY, "")
    return kept


def pop_return_url() -> str:
    """Remove and return the stored URL, or return the URL of the security settings."""
    kept = get_return_url()
    session.pop(_RETURN_URL_KEY, None)
    return kept or url_for("account.security")


def complete_factor_setup(name: str, codes: Sequence[str]) -> ResponseReturnValue:
    """Complete the setup of a second factor, and show any new recovery codes."""
    renew_current_sign_in()
    if codes:
        return redirect_to_recovery_codes(codes)
    flash(f"The {name} was added. Use it when you sign in.")
    return redirect(pop_return_url())


def redirect_to_recovery_codes(codes: Sequence[str]) -> ResponseReturnValue:
    """Redirect to the page that shows new recovery codes once."""
    store_secret(_RECOVERY_CODES_KEY, " ".join(codes))
    return redirect(url_for("second_factors.show_recovery_codes"))


def pop_recovery_codes() -> list[str]:
    """Return the newly issued recovery codes once.

    Later calls return an empty list.
    """
    return (take_secret(_RECOVERY_CODES_KEY) or "").split()


def redirect_to_required_setup() -> ResponseReturnValue | None:
    """Redirect users who must change their password or set up a second factor.

    The pages for both steps and for signing out remain accessible.
    """
    endpoint = find_endpoint()
    is_open = endpoint is not None and endpoint.open_before_password_change
    if is_open or not current_user.is_authenticated:
        return None
    if current_user.user.must_change_password:
        return redirect_to_security_settings()
    is_for_setup = endpoint is not None and endpoint.open_before_second_factor
    if not is_for_setup and find_due_second_factor_requirement():
        return redirect_to_security_settings()
    return None


def redirect_to_security_settings() -> ResponseReturnValue:
    """Redirect to the security settings, and store the requested page."""
    if request.method == "GET":
        remember_return_url(get_current_path_and_query())
    return redirect(url_for("account.security"))


_PROVIDER_REQUEST_KEY = "asked_provider"


def redirect_to_provider(slug: str, *, next_page: str, connects: bool) -> ResponseReturnValue:
    """Redirect to an identity provider, and store the page to show after the sign-in.

    Signed-in users must sign in again, except to connect accounts. Raise ProviderError on failure.
    """
    mine = get_current_user().sign_in_id if current_user.is_authenticated else None
    asked = ProviderRequest(
        number=generate_random_hex(32),
        slug=slug,
        asked_at=get_current_time(),
        is_again=mine is not None and not connects,
        sign_in_id=mine if connects else None,
    )
    url = start_provider_request(get_unit_of_work(), asked)
    session[_PROVIDER_REQUEST_KEY] = {
        "number": asked.number,
        "slug": slug,
        "asked_at": asked.asked_at.isoformat(),
        "is_again": asked.is_again,
        "sign_in_id": asked.sign_in_id,
        "next": shorten_return_url(next_page),
    }
    response = redirect(url)
    response.headers["Cache-Control"] = "no-store"  # The URL contains a secret state.
    return response


def pop_provider_request(slug: str) -> tuple[ProviderRequest, str]:
    """Return this browser's pending provider request and the page to show afterwards.

    A request can be retrieved only once. If no request is pending, return a request that matches no
    response.
    """
    kept = session.pop(_PROVIDER_REQUEST_KEY, {})
    mine = get_current_user().sign_in_id if current_user.is_authenticated else None
    connects_for = kept.get("sign_in_id")
    is_ours = kept.get("slug") == slug and connects_for in (None, mine)
    asked = ProviderRequest(
        number=kept["number"] if is_ours else generate_random_hex(32),
        slug=slug,
        asked_at=datetime.fromisoformat(kept["asked_at"]) if is_ours else get_current_time(),
        is_again=bool(kept.get("is_again")),
        sign_in_id=connects_for if is_ours else None,
    )
    return asked, kept.get("next", "") if is_ours else ""
