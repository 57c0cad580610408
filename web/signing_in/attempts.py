"""Sign-in attempts, limited by account and by address, or by a device cookie.

With the cookie, guesses from elsewhere do not lock out browsers that have signed in before. The
scheme is OWASP's "Slow Down Online Guessing Attacks with Device Cookies". The signed cookie
holds a random id for each account that has signed in. It grants no access and outlives the
sign-in. Attempts from such a browser are counted by that id, all others together.
"""

from datetime import timedelta

from flask import Response, after_this_request, current_app, g, request

from domain.accounts.users import SignInAttempt
from domain.randomness import random_hex
from web.http.cookies import cookie_name
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import settings, sign_in_limits

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
