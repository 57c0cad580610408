"""Errors related to repositories. `web/http/errors.py` maps them to status codes."""

from domain.core.errors import DomainError, OverloadedError


class CredentialsNeededError(DomainError):
    """Error for a request that needs a token, whether or not the project exists."""


class GitUnavailableError(DomainError):
    """Error for a host on which Git is missing or too old."""


class GitFailedError(DomainError):
    """Error for a failed Git command. The log contains the reason."""


class GitTimeoutError(GitFailedError):
    """Error for a Git command that took too long."""


class RepositoryBusyError(OverloadedError):
    """Error for a request that arrives while too many Git processes are running."""


class DiskNearlyFullError(DomainError):
    """Error for a push when the disk with the repositories has too little free space."""


class InvalidGitBodyError(DomainError):
    """Error for a request whose body does not match its headers."""


class UnsupportedGitEncodingError(DomainError):
    """Error for a request body with an unsupported content encoding."""


class GitBodyTooLargeError(DomainError):
    """Error for a push or a request body that exceeds the size limit."""
