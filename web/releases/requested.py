"""The release that applies to a request: the running one, or one that is rehearsed.

A rehearsal shows former or future formats of an interface. Rules of security, limits and expiries
depend on the running release alone, because the header would loosen them.
"""

from flask import Flask, request

from domain.errors import DomainError
from domain.releases.version import Release, parse_release
from web.services import services
from web.settings.reader import Settings

HEADER = "Platform-Release"
_HEADER_IN_ENVIRONMENT = "HTTP_PLATFORM_RELEASE"
#: Where a header of nonsense is refused; other URLs have nothing that a release changes.
_ROOMS = ("/api/", "/oauth/", "/-/")


class NoSuchReleaseError(DomainError):
    """The header's value is not a release."""

    def __init__(self) -> None:
        """Describe the format."""
        super().__init__(f"{HEADER} must be a release such as 18.0.")


def requested_release() -> Release:
    """Return the release that applies to this request, or raise NoSuchReleaseError."""
    rehearsed = request.environ.get(_HEADER_IN_ENVIRONMENT)
    if rehearsed is None:
        return running_release()
    try:
        return parse_release(rehearsed.strip())
    except ValueError as error:
        raise NoSuchReleaseError from error


def running_release() -> Release:
    """Return the release of the instance."""
    return services().live_settings.derived(_release)


def _release(current: Settings) -> Release:
    return parse_release(current.release)


def refuse_unknown_releases(app: Flask) -> None:
    """Refuse requests that rehearse what is no release, wherever releases differ."""
    app.before_request(_check_header)


def _check_header() -> None:
    if _HEADER_IN_ENVIRONMENT in request.environ and request.path.startswith(_ROOMS):
        requested_release()
