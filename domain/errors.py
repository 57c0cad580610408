"""What can go wrong, in the domain's words; `web/http/errors.py` alone turns them into answers."""


class DomainError(Exception):
    """Base of all errors that a caller may have caused; the text is meant for people."""


class NotFoundError(DomainError):
    """What was asked for does not exist, or the caller may not know that it does."""


class ForbiddenError(DomainError):
    """The caller is known and may not do this."""


class InvalidError(DomainError):
    """A value cannot be accepted; `field` names the form field that carries it."""

    def __init__(self, message: str, *, field: str = "") -> None:
        """Say what is wrong with the value and, if known, of which field."""
        super().__init__(message)
        self.field = field


class QueryError(InvalidError):
    """An address asks a list for what the list does not know; `field` names the parameter."""


class ConflictError(InvalidError):
    """The value is taken, or the state has changed meanwhile."""


class TooManyRequestsError(DomainError):
    """Somebody asks more often than the instance allows; the status says all that there is."""

    def __init__(self, *, retry_after: int) -> None:
        """Say when to ask again, in seconds."""
        super().__init__("")
        self.retry_after = retry_after


class TooManyAttemptsError(DomainError):
    """Somebody tried too often."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Say so; `retry_after` is in seconds."""
        super().__init__(message)
        self.retry_after = retry_after
