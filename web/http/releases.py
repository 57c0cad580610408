"""Which release a request is answered by: the running one, or one that it wants to rehearse.

Rehearsing shows what an interface looked like or will look like. It is for shapes alone: what
protects somebody never asks here, or a header could take the protection away.
"""

from flask import request

from domain.errors import DomainError
from domain.releases.version import Release, parse_release
from web.services import settings

HEADER = "Platform-Release"


class NoSuchReleaseError(DomainError):
    """The header names no release."""

    def __init__(self) -> None:
        """Say how one is written."""
        super().__init__(f"{HEADER} must be a release such as 18.0.")


def release_shown() -> Release:
    """Return the release of this request, or raise NoSuchReleaseError."""
    rehearsed = request.headers.get(HEADER)
    if rehearsed is None:
        return parse_release(settings().release)
    try:
        return parse_release(rehearsed.strip())
    except ValueError as error:
        raise NoSuchReleaseError from error
