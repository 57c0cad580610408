"""Sends browsers to identity providers, and knows them when they come back.

The session keeps what was asked for, for one response and ten minutes.
"""

from datetime import datetime

from flask import redirect, session
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.identity_providers.signing_in import Asked, begin
from domain.randomness import random_hex
from web.access.marks import get_current_user
from web.http.work import work
from web.services import now

_KEY = "asked_provider"
#: With more, the cookie of the session would be too large for browsers.
_LONGEST_PAGE = 2_000


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
        "next": next_page if len(next_page) <= _LONGEST_PAGE else "",
    }
    return redirect(url)


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
