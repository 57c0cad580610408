"""Errors of repositories; `web/http/errors.py` gives them their status."""

from domain.core.errors import DomainError, OverloadedError


class CredentialsNeededError(DomainError):
    """The request needs a token, whether the project exists or not."""


class GitUnavailableError(DomainError):
    """Git is missing on this host or too old."""


class GitFailedError(DomainError):
    """Git ended with an error, which the log has."""


class GitTimeoutError(GitFailedError):
    """A command of Git took too long."""


class RepositoryBusyError(OverloadedError):
    """Too many Git processes run."""


class DiskNearlyFullError(DomainError):
    """The disk of the repositories has too little room for a push."""


class GitBodyError(DomainError):
    """The body of a request is not what its headers say."""


class GitEncodingError(DomainError):
    """The content coding of a body is none that Git's clients use."""


class GitBodyTooLargeError(DomainError):
    """The declared size of a push, or the body of a request, is above the limit."""
