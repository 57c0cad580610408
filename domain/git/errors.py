"""Errors of repositories. `web/http/errors.py` maps them to status codes."""

from domain.core.errors import DomainError, OverloadedError


class CredentialsNeededError(DomainError):
    """The request needs a token, whether or not the project exists."""


class GitUnavailableError(DomainError):
    """Git is not installed on this host, or is too old."""


class GitFailedError(DomainError):
    """Git failed. The reason is in the log."""


class GitTimeoutError(GitFailedError):
    """A Git command took too long."""


class RepositoryBusyError(OverloadedError):
    """Too many Git processes are running."""


class DiskNearlyFullError(DomainError):
    """The disk of the repositories has too little free space for a push."""


class InvalidGitBodyError(DomainError):
    """The body of a request does not match its headers."""


class UnsupportedGitEncodingError(DomainError):
    """The content encoding of a request body is not supported."""


class GitBodyTooLargeError(DomainError):
    """The declared size of a push, or the size of a request body, exceeds the limit."""
