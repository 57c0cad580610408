"""Signing in: attempts, their completion, and the way to identity providers and back.

Attempts are limited by account and by address, or by a device cookie. With the cookie, guesses from
elsewhere do not lock out browsers that have signed in before. The scheme is OWASP's "Slow Down
Online Guessing Attacks with Device Cookies". The signed cookie holds a random id for each account
that has signed in. It grants no access and outlives the sign-in. Attempts from such a browser are
counted by that id, all others together.

Of a way to an identity provider, the session keeps what was asked for, for one response and ten
minutes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import unquote

from flask import (
    Flask,
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
from web.http.endpoints import find_endpoint, page_blueprints
from web.http.public_urls import current_path
from web.http.work import work
from web.sealing.sealer import BrokenSealError, keep_secret, seal, take_secret, unseal
from web.sealing.sign_ins import begin_pending_sign_in
from web.services import now, services, settings, sign_in_limits

_NAME = "gatebell_browser"
_PURPOSE = "known browser"
_LIFETIME = timedelta(days=366)
#: The most accounts in a cookie; the ones that signed in last are kept.
_MOST_ACCOUNTS = 8


def known_accounts() -> dict[int, str]:
    """Return the device ids of this browser, by account id."""
    if "known_accounts" not in g:
        g.known_accounts = _read(request.cookies.get(_cookie_name(), ""))
    found: dict[int, str] = g.known_accounts
    return found


def remember_browser(user_id: int) -> None:
    """Set the cookie with a device id for an account that has just signed in."""
    device_ids = known_accounts()
    # Ordered by the latest sign-in; the oldest is dropped.
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
    """Return the content of the cookie; an invalid one is empty."""
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
    return own_page(request.values.get("next", ""))


def own_page(target: str) -> str:
    """Return the address if it is of this service, or an empty string."""
    # Browsers drop tabs and newlines, treat a backslash as a slash, and resolve two dots.
    path = unquote(target.partition("?")[0]).replace("\\", "/")
    is_ours = target.startswith(url_for("home.index")) and not path.startswith("//")
    return target if is_ours and "/.." not in path and target.isprintable() else ""


def keep_page(path: str) -> None:
    """Keep the page of this service that is shown after what has to come first."""
    # Browsers drop a cookie of four kilobytes, and the session has more in it.
    session[_KEPT_PAGE] = short_address(path)


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


_KEY = "asked_provider"


def send_to_provider(slug: str, *, next_page: str, connects: bool) -> ResponseReturnValue:
    """Redirect to a provider, to come back to a page; raise ProviderError.

    Who is signed in already is asked to sign in there once more.
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
    """Return what this browser asked a provider for, once, and the page to go to afterwards.

    Without that, it is what no response fits.
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
