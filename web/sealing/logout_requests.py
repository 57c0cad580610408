"""A checked request to sign out, sealed to travel through the browser.

An application may ask by POST, from its own origin; the browser leaves our cookie behind then, so
that nobody knows who is signed in. The request is carried over to a GET, without the ID token that
it came with. The question is sealed for the sign-in that sees it, as the consent page's is.
"""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from domain.oauth.endpoints.logout import LogoutRequest
from web.sealing.consent_forms import StaleQuestionError
from web.sealing.sealer import BrokenSealError, seal, unseal

_CARRIED, _CARRIED_FOR = "logout", timedelta(minutes=5)
_QUESTION, _OPEN_FOR = "logout question", timedelta(hours=1)


def carry(asked: LogoutRequest) -> str:
    """Seal a request for the next address."""
    return seal(asdict(asked), purpose=_CARRIED)


def read_carried(ticket: str) -> LogoutRequest:
    """Return the request, or raise StaleQuestionError."""
    return LogoutRequest(**_opened(ticket, _CARRIED, _CARRIED_FOR))


def write_question(asked: LogoutRequest, *, sign_in_id: int) -> str:
    """Seal a request for the answer of one sign-in."""
    sealed = {"asked": asdict(asked), "sign_in": sign_in_id}
    return seal(sealed, purpose=_QUESTION)


def read_question(ticket: str, *, sign_in_id: int) -> LogoutRequest:
    """Return the request, or raise StaleQuestionError."""
    sealed = _opened(ticket, _QUESTION, _OPEN_FOR)
    if sealed["sign_in"] != sign_in_id:
        raise StaleQuestionError
    return LogoutRequest(**sealed["asked"])


def _opened(ticket: str, purpose: str, lifetime: timedelta) -> Any:
    try:
        return unseal(ticket, purpose=purpose, lifetime=lifetime)
    except BrokenSealError as error:
        raise StaleQuestionError from error
