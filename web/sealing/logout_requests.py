"""Sealed logout requests, for a redirect and for the confirmation page.

A cross-site POST by an application comes without our cookie, so the user is unknown. The validated
request is sealed into a redirect to a GET, without its ID token. The confirmation page's form is
sealed for one sign-in, as the consent page's is.
"""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from domain.oauth.endpoints.logout import LogoutRequest
from web.sealing.consent_forms import ExpiredFormError
from web.sealing.sealer import BrokenSealError, seal, unseal

_CARRIED, _CARRIED_FOR = "logout", timedelta(minutes=5)
_CONFIRMATION, _OPEN_FOR = "logout question", timedelta(hours=1)


def seal_request(asked: LogoutRequest) -> str:
    """Seal a request for a redirect."""
    return seal(asdict(asked), purpose=_CARRIED)


def open_request(sealed_text: str) -> LogoutRequest:
    """Return the request, or raise ExpiredFormError."""
    return LogoutRequest(**_opened(sealed_text, _CARRIED, _CARRIED_FOR))


def seal_confirmation(asked: LogoutRequest, *, sign_in_id: int) -> str:
    """Seal a request for the confirmation by one sign-in."""
    sealed = {"asked": asdict(asked), "sign_in": sign_in_id}
    return seal(sealed, purpose=_CONFIRMATION)


def open_confirmation(sealed_text: str, *, sign_in_id: int) -> LogoutRequest:
    """Return the request, or raise ExpiredFormError."""
    sealed = _opened(sealed_text, _CONFIRMATION, _OPEN_FOR)
    if sealed["sign_in"] != sign_in_id:
        raise ExpiredFormError
    return LogoutRequest(**sealed["asked"])


def _opened(sealed_text: str, purpose: str, lifetime: timedelta) -> Any:
    try:
        return unseal(sealed_text, purpose=purpose, lifetime=lifetime)
    except BrokenSealError as error:
        raise ExpiredFormError from error
