"""Errors of repositories; `web/http/errors.py` gives them their status."""

from domain.errors import DomainError


class CredentialsNeededError(DomainError):
    """The request needs a token, whether the project exists or not."""


class GitUnavailableError(DomainError):
    """Git is missing on this host or too old."""


class GitFailedError(DomainError):
    """Git ended with an error, which the log has."""


class GitTimeoutError(GitFailedError):
    """A command of Git took too long."""


class RepositoryBusyError(DomainError):
    """Too many Git processes run; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        """Set the message and the pause before the next attempt."""
        super().__init__(message)
        self.retry_after = retry_after


class DiskNearlyFullError(DomainError):
    """The disk of the repositories has too little room for a push."""


class GitBodyError(DomainError):
    """The body of a request is not what its headers say."""


class GitEncodingError(DomainError):
    """The content coding of a body is none that Git's clients use."""


class GitBodyTooLargeError(DomainError):
    """The declared size of a push, or the body of a request, is above the limit."""
