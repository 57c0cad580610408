"""Browsers in which somebody has signed in before: strangers who guess do not keep those out.

The scheme is OWASP's device cookie (Slow Down Online Guessing Attacks with Device Cookies). The
cookie holds a random mark for each account that signed in; it is sealed, lets nobody in, and
outlives the sign-in. Guesses from such a browser are counted by its mark, all others together.
"""

from datetime import timedelta

from flask import Response, after_this_request, current_app, g, request

from domain.randomness import random_hex
from web.http.cookies import cookie_name
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import settings

_NAME = "gatebell_browser"
_PURPOSE = "known browser"
_LIFETIME = timedelta(days=366)
#: People who share a browser; the ones who signed in last.
_MOST_ACCOUNTS = 8


def known_accounts() -> dict[int, str]:
    """Return the marks of this browser, by the number of the account."""
    if "known_accounts" not in g:
        g.known_accounts = _read(request.cookies.get(_cookie_name(), ""))
    found: dict[int, str] = g.known_accounts
    return found


def remember_browser(user_id: int) -> None:
    """Give this browser a mark of an account that has just signed in, or keep the one it has."""
    marks = known_accounts()
    # The latest comes last, and the one that has not come for the longest time goes.
    marks[user_id] = marks.pop(user_id, "") or random_hex(16)
    latest = dict(list(marks.items())[-_MOST_ACCOUNTS:])
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
    """Return what a cookie of ours holds; whatever else comes by this name is nothing."""
    try:
        return dict(unseal(sealed, purpose=_PURPOSE, lifetime=_LIFETIME))
    except BrokenSealError:
        return {}
