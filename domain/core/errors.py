"""Errors of the domain package, which `web/http/errors.py` renders."""

from collections.abc import Sequence
from typing import NamedTuple


class DomainError(Exception):
    """The base class of all errors caused by callers. The message is shown to users."""


class NotFoundError(DomainError):
    """Error for an object that does not exist, or that the caller may not see."""


class GoneError(DomainError):
    """Error for an operation that a release has removed."""


class ForbiddenError(DomainError):
    """Error for a missing permission."""


class InvalidError(DomainError):
    """Error for an invalid value.

    `field` is the name of the form field.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        """Store the message and, if known, the field."""
        super().__init__(message)
        self.field = field

    @property
    def sentences(self) -> tuple[str, ...]:
        """The problems, one sentence for each invalid value of the field."""
        return (str(self),)


class InvalidValuesError(InvalidError):
    """Error for several invalid values of one field."""

    def __init__(self, sentences: Sequence[str], *, field: str) -> None:
        """Store a sentence for each value, and build a message that contains all sentences."""
        super().__init__(" ".join(sentences), field=field)
        self._sentences = tuple(sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The problems, one sentence for each invalid value of the field."""
        return self._sentences


class InvalidValue(NamedTuple):
    """An invalid parameter, and the reason as a phrase that follows the parameter's name.

    If the field is empty, the reason is a whole sentence.
    """

    field: str
    reason: str

    @property
    def sentence(self) -> str:
        """The problem as a sentence, with the name of the parameter in backticks."""
        name = f"`{self.field}` " if self.field else ""
        return f"{name}{self.reason.removesuffix('.')}."


class QueryError(InvalidError):
    """Error for an invalid query parameter.

    `field` is the name of the parameter.
    """


class InvalidQueryError(QueryError):
    """Error for invalid query parameters.

    The message describes each invalid parameter in a sentence.
    """

    def __init__(self, problems: Sequence[InvalidValue]) -> None:
        """Store the problems, and build a message with a sentence for each problem."""
        super().__init__(" ".join(each.sentence for each in problems), field=problems[0].field)
        self.problems = tuple(problems)


class InvalidParametersError(InvalidError):
    """Error for invalid parameters in a request.

    `problems` contains all invalid parameters.
    """

    def __init__(self, problems: Sequence[InvalidValue]) -> None:
        """Store the problems, and build a message with a sentence for each problem."""
        super().__init__(" ".join(each.sentence for each in problems))
        self.problems = tuple(problems)


class ConflictError(InvalidError):
    """Error for a value that is already taken, or for a state that has changed concurrently."""


class TakenError(ConflictError):
    """Error for a path or name that is already taken."""


class TooManyAttemptsError(DomainError):
    """Error for a client that must wait after too many attempts."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Store the message, and the number of seconds to wait before the next attempt."""
        super().__init__(message)
        self.retry_after = retry_after


class OverloadedError(DomainError):
    """Error for a request that the service is currently too busy to process."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Store the message, and the number of seconds to wait before the next attempt."""
        super().__init__(message)
        self.retry_after = retry_after
