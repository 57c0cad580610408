"""The release that applies to a request: the running one, or one to preview.

A preview shows former or future formats of an interface. Security rules must not depend on it,
because the header would disable them.
"""

from flask import request

from domain.errors import DomainError
from domain.releases.version import Release, parse_release
from web.services import settings

HEADER = "Platform-Release"


class NoSuchReleaseError(DomainError):
    """The header's value is not a release."""

    def __init__(self) -> None:
        """Describe the format."""
        super().__init__(f"{HEADER} must be a release such as 18.0.")


def release_shown() -> Release:
    """Return the release that applies to this request, or raise NoSuchReleaseError."""
    rehearsed = request.headers.get(HEADER)
    if rehearsed is None:
        return parse_release(settings().release)
    try:
        return parse_release(rehearsed.strip())
    except ValueError as error:
        raise NoSuchReleaseError from error
