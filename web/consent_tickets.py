"""What the consent page showed, sealed: the answer is to that question and to no other.

The form carries the request's parameters and the sign-in that saw them, signed. Changing a hidden
field breaks the seal, and another session cannot use it.
"""

from collections.abc import Mapping, Sequence

from flask import current_app
from itsdangerous import BadData, URLSafeTimedSerializer

from domain.errors import DomainError

_MOST_SECONDS = 3600


class StaleQuestionError(DomainError):
    """The question is too old, belongs to somebody else, or was tampered with."""

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__("This question is no longer open. Start again from the application.")


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(current_app.secret_key), salt="consent")


def write_ticket(parameters: Mapping[str, Sequence[str]], *, sign_in_id: int) -> str:
    """Seal the parameters for one sign-in."""
    sealed = {"parameters": {k: list(v) for k, v in parameters.items()}, "sign_in": sign_in_id}
    return str(_serializer().dumps(sealed))


def read_ticket(ticket: str, *, sign_in_id: int) -> dict[str, list[str]]:
    """Return the parameters, or raise StaleQuestionError."""
    try:
        sealed = _serializer().loads(ticket, max_age=_MOST_SECONDS)
    except BadData as error:
        raise StaleQuestionError from error
    if sealed["sign_in"] != sign_in_id:
        raise StaleQuestionError
    parameters: dict[str, list[str]] = sealed["parameters"]
    return parameters
