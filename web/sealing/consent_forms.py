"""Sealed state of the consent page: binds the decision to the request that was shown.

The form contains the signed request parameters and the id of the sign-in. It cannot be changed,
used by another sign-in, or used twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from domain.accounts.attempt_limits import claim_once
from domain.errors import DomainError
from domain.randomness import random_hex
from web.extensions import db
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import now, services

_PURPOSE = "consent"
_LIFETIME = timedelta(hours=1)


class ExpiredFormError(DomainError):
    """The form is expired, belongs to another sign-in, or was tampered with."""

    def __init__(self) -> None:
        """Advise to start again."""
        super().__init__("This form has expired. Start again from the application.")


@dataclass(frozen=True, kw_only=True)
class ConsentForm:
    """The content of a sealed consent form."""

    number: str
    parameters: Mapping[str, Sequence[str]]
    sign_in_id: int


def seal_consent_form(parameters: Mapping[str, Sequence[str]], *, sign_in_id: int) -> str:
    """Seal the request parameters for one sign-in."""
    sealed = {
        "number": random_hex(16),
        "parameters": {name: list(values) for name, values in parameters.items()},
        "sign_in": sign_in_id,
    }
    return seal(sealed, purpose=_PURPOSE)


def open_consent_form(sealed_text: str) -> ConsentForm:
    """Return the form, or raise ExpiredFormError; the sign-in is not checked here."""
    try:
        sealed = unseal(sealed_text, purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError as error:
        raise ExpiredFormError from error
    return ConsentForm(
        number=sealed.get("number", sealed_text),  # former releases gave none
        parameters=sealed["parameters"],
        sign_in_id=sealed["sign_in"],
    )


def consume(form: ConsentForm, *, sign_in_id: int) -> bool:
    """Mark the form as used; return False if it was used before.

    Raises ExpiredFormError if it belongs to another sign-in.
    """
    if form.sign_in_id != sign_in_id:
        raise ExpiredFormError
    return claim_once(
        f"consent question {form.number}",
        lifetime=_LIFETIME,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
