"""The errors of the domain; `web/http/errors.py` renders them."""

from collections.abc import Sequence
from typing import NamedTuple


class DomainError(Exception):
    """The base class of all errors caused by callers; the message is shown to users."""


class NotFoundError(DomainError):
    """The object does not exist, or the caller may not see it."""


class GoneError(DomainError):
    """A release has removed the operation."""


class ForbiddenError(DomainError):
    """The caller lacks the permission."""


class InvalidError(DomainError):
    """A value is invalid; `field` is the name of its form field."""

    def __init__(self, message: str, *, field: str = "") -> None:
        """Store the message and, if known, the field."""
        super().__init__(message)
        self.field = field

    @property
    def sentences(self) -> tuple[str, ...]:
        """The problems, one sentence for each invalid value of the field."""
        return (str(self),)


class InvalidValuesError(InvalidError):
    """Several values of one field are invalid."""

    def __init__(self, sentences: Sequence[str], *, field: str) -> None:
        """Store a sentence for each value; the message contains all of them."""
        super().__init__(" ".join(sentences), field=field)
        self._sentences = tuple(sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The problems, one sentence for each invalid value of the field."""
        return self._sentences


class InvalidValue(NamedTuple):
    """An invalid parameter, and the reason in words that follow its name."""

    field: str
    reason: str


class QueryError(InvalidError):
    """A query parameter of a list is invalid; `field` is its name."""


class InvalidQueryError(QueryError):
    """Query parameters are invalid; the message names all of them in sentences."""

    def __init__(self, problems: Sequence[InvalidValue]) -> None:
        """Store the problems."""
        sentences = (f"{each.field} {each.reason}." for each in problems)
        super().__init__(" ".join(sentences), field=problems[0].field)
        self.problems = tuple(problems)


class InvalidParametersError(InvalidError):
    """Parameters of a request are invalid; `problems` contains all of them."""

    def __init__(self, problems: Sequence[InvalidValue]) -> None:
        """Store the problems; the message names all of them."""
        super().__init__("; ".join(f"{each.field} {each.reason}" for each in problems))
        self.problems = tuple(problems)


class ConflictError(InvalidError):
    """The value is taken, or the state has changed concurrently."""


class TakenError(ConflictError):
    """The path or name in `field` is already taken."""


class TooManyAttemptsError(DomainError):
    """Too many attempts were made."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Set the message; `retry_after` is in seconds."""
        super().__init__(message)
        self.retry_after = retry_after


class OverloadedError(DomainError):
    """The service is too busy to respond; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Set the message and the waiting time before the next attempt."""
        super().__init__(message)
        self.retry_after = retry_after
