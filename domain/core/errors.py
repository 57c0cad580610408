"""The errors of the domain; `web/http/errors.py` renders them."""

from collections.abc import Sequence
from typing import NamedTuple


class DomainError(Exception):
    """The base of all errors caused by callers; the message is shown to users."""


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
        """What is wrong, one sentence for each value of the field."""
        return (str(self),)


class InvalidValuesError(InvalidError):
    """Several values of one field are invalid."""

    def __init__(self, sentences: Sequence[str], *, field: str) -> None:
        """Store a sentence for each; the message has all of them."""
        super().__init__(" ".join(sentences), field=field)
        self._sentences = tuple(sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, one sentence for each value of the field."""
        return self._sentences


class InvalidValue(NamedTuple):
    """A parameter that cannot be taken, and the reason in words that follow its name."""

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
    """Parameters of a request are invalid; `problems` has every one of them."""

    def __init__(self, problems: Sequence[InvalidValue]) -> None:
        """Store the problems; the message names all of them."""
        super().__init__("; ".join(f"{each.field} {each.reason}" for each in problems))
        self.problems = tuple(problems)


class ConflictError(InvalidError):
    """The value is taken, or the state has changed concurrently."""


class TakenError(ConflictError):
    """Something else has the path or name in `field`."""


class TooManyAttemptsError(DomainError):
    """Too many attempts were made."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Set the message; `retry_after` is in seconds."""
        super().__init__(message)
        self.retry_after = retry_after


class OverloadedError(DomainError):
    """Too much is going on to answer now; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Set the message and the pause before the next attempt."""
        super().__init__(message)
        self.retry_after = retry_after
