"""What the consent page showed, sealed: the answer is to that question and to no other.

The form carries the request's parameters and the sign-in that saw them, signed. Changing a hidden
field breaks the seal, another session cannot use it, and one page is good for one answer.
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


class StaleQuestionError(DomainError):
    """The question is too old, belongs to somebody else, or was tampered with."""

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__("This question is no longer open. Start again from the application.")


@dataclass(frozen=True, kw_only=True)
class ShownQuestion:
    """A question as the page asked it."""

    number: str
    parameters: Mapping[str, Sequence[str]]
    sign_in_id: int


def write_ticket(parameters: Mapping[str, Sequence[str]], *, sign_in_id: int) -> str:
    """Seal the parameters for one sign-in and one answer."""
    sealed = {
        "number": random_hex(16),
        "parameters": {name: list(values) for name, values in parameters.items()},
        "sign_in": sign_in_id,
    }
    return seal(sealed, purpose=_PURPOSE)


def read_ticket(ticket: str) -> ShownQuestion:
    """Return the question, whoever saw it, or raise StaleQuestionError."""
    try:
        sealed = unseal(ticket, purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError as error:
        raise StaleQuestionError from error
    return ShownQuestion(
        number=sealed.get("number", ticket),  # former releases gave none
        parameters=sealed["parameters"],
        sign_in_id=sealed["sign_in"],
    )


def consume(question: ShownQuestion, *, sign_in_id: int) -> bool:
    """Tell whether nobody has answered yet; from now on somebody has.

    Raises StaleQuestionError if it was shown to another sign-in.
    """
    if question.sign_in_id != sign_in_id:
        raise StaleQuestionError
    return claim_once(
        f"consent question {question.number}",
        lifetime=_LIFETIME,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
