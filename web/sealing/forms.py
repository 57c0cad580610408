"""Sealed state of the pages on which users decide about consent, a device, or a logout.

The state binds the decision to the displayed request and to the sign-in of the user who saw the
request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from domain.accounts.attempt_counters import claim_single_use_value
from domain.core.errors import DomainError
from domain.core.randomness import generate_random_hex
from domain.oauth.device_authorizations import AlreadyDecidedError, DisplayedDeviceRequest
from domain.oauth.endpoints import LogoutRequest
from web.extensions import db
from web.sealing.sealed_values import BrokenSealError, seal_value, unseal_text
from web.services import get_current_time, get_services

_FORM_LIFETIME = timedelta(hours=1)
#: Time for which an expired form still redirects to its page, without allowing a decision.
_EXPIRED_FORM_LIFETIME = timedelta(days=1)
_CONSENT_PURPOSE, _DEVICE_PURPOSE, _LOGOUT_PURPOSE = "consent", "device", "logout decision"
#: Purpose and lifetime of a logout request that is carried through a redirect. A cross-site POST by
#: an application does not include the session cookie, so the user is unknown. The validated request
#: is therefore sealed into a redirect to a GET, without its ID token.
_LOGOUT_REQUEST_PURPOSE, _LOGOUT_REQUEST_LIFETIME = "logout request", timedelta(minutes=5)


class ExpiredFormError(DomainError):
    """Error for a form that has expired, belongs to another sign-in, or was tampered with."""

    def __init__(self) -> None:
        """Set the message, which advises the user to start again."""
        super().__init__("This form has expired. Start again from the application.")


@dataclass(frozen=True, kw_only=True)
class ConsentForm:
    """Content of a sealed consent form."""

    number: str
    parameters: Mapping[str, Sequence[str]]
    sign_in_id: int
    #: `True` if the form is too old for a decision. Its parameters still lead back to the page.
    is_expired: bool


def seal_consent_form(parameters: Mapping[str, Sequence[str]], *, sign_in_id: int) -> str:
    """Seal the parameters of an authorization request for the user of the given sign-in."""
    sealed = {
        "number": generate_random_hex(16),
        "parameters": {name: list(values) for name, values in parameters.items()},
        "sign_in": sign_in_id,
    }
    return seal_value(sealed, purpose=_CONSENT_PURPOSE)


def unseal_consent_form(sealed_text: str) -> ConsentForm:
    """Return the content of a form without checking its sign-in.

    Raise ExpiredFormError if the form is too old or was tampered with.
    """
    is_expired = False
    try:
        sealed = unseal_text(sealed_text, purpose=_CONSENT_PURPOSE, lifetime=_FORM_LIFETIME)
    except BrokenSealError:
        is_expired = True
        sealed = _unseal_form(sealed_text, _CONSENT_PURPOSE, _EXPIRED_FORM_LIFETIME)
    return ConsentForm(
        number=sealed.get("number", sealed_text),  # earlier releases stored no number
        parameters=sealed["parameters"],
        sign_in_id=sealed["sign_in"],
        is_expired=is_expired,
    )


def consume_consent_form(form: ConsentForm) -> bool:
    """Mark the form as used and return True, or return False if it was used before."""
    return claim_single_use_value(
        f"consent question {form.number}",
        lifetime=_FORM_LIFETIME,
        session=db.session(),
        keyring=get_services().keyring,
        now=get_current_time(),
    )


def seal_device_form(displayed_device_request: DisplayedDeviceRequest, *, sign_in_id: int) -> str:
    """Seal a device request, as it was displayed to the user of the given sign-in."""
    return seal_value(
        [
            displayed_device_request.id,
            sign_in_id,
            displayed_device_request.user_code,
            list(displayed_device_request.scopes),
        ],
        purpose=_DEVICE_PURPOSE,
    )


def unseal_device_form(sealed_text: str, *, sign_in_id: int) -> DisplayedDeviceRequest | None:
    """Return the displayed request, or None if it must be displayed again.

    The request is displayed again if the form belongs to another sign-in, or if it comes from an
    earlier release and contains only the ID. Raise AlreadyDecidedError if the form is too old or
    was tampered with.
    """
    try:
        device_id, owner, *shown = unseal_text(
            sealed_text, purpose=_DEVICE_PURPOSE, lifetime=_FORM_LIFETIME
        )
    except BrokenSealError as error:
        raise AlreadyDecidedError from error
    if owner != sign_in_id or not shown:
        return None
    user_code, scopes = shown
    return DisplayedDeviceRequest(id=int(device_id), user_code=user_code, scopes=tuple(scopes))


def seal_logout_request(logout_request: LogoutRequest) -> str:
    """Seal a logout request for a redirect."""
    return seal_value(asdict(logout_request), purpose=_LOGOUT_REQUEST_PURPOSE)


def unseal_logout_request(sealed_text: str) -> LogoutRequest:
    """Return the logout request from a redirect.

    Raise ExpiredFormError if it is too old or was tampered with.
    """
    return LogoutRequest(
        **_unseal_form(sealed_text, _LOGOUT_REQUEST_PURPOSE, _LOGOUT_REQUEST_LIFETIME)
    )


def seal_logout_form(logout_request: LogoutRequest, *, sign_in_id: int) -> str:
    """Seal a logout request that the user confirms during the given sign-in."""
    sealed = {"asked": asdict(logout_request), "sign_in": sign_in_id}
    return seal_value(sealed, purpose=_LOGOUT_PURPOSE)


@dataclass(frozen=True, kw_only=True)
class LogoutForm:
    """Content of a sealed logout form."""

    asked: LogoutRequest
    #: `True` if the form may sign out, since it is recent and was shown to this sign-in.
    is_valid: bool


def unseal_logout_form(sealed_text: str, *, sign_in_id: int | None) -> LogoutForm:
    """Return the content of a logout form, and whether the form is valid for the given sign-in.

    Raise ExpiredFormError if it is too old or was tampered with.
    """
    is_recent = True
    try:
        sealed = unseal_text(sealed_text, purpose=_LOGOUT_PURPOSE, lifetime=_FORM_LIFETIME)
    except BrokenSealError:
        is_recent = False
        sealed = _unseal_form(sealed_text, _LOGOUT_PURPOSE, _EXPIRED_FORM_LIFETIME)
    return LogoutForm(
        asked=LogoutRequest(**sealed["asked"]),
        is_valid=is_recent and sealed["sign_in"] == sign_in_id,
    )


def _unseal_form(sealed_text: str, purpose: str, lifetime: timedelta) -> Any:
    try:
        return unseal_text(sealed_text, purpose=purpose, lifetime=lifetime)
    except BrokenSealError as error:
        raise ExpiredFormError from error
