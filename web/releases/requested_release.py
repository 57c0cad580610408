"""The release that applies to a request: the running one, or one that is rehearsed.

A rehearsal shows former or future formats of an interface. Rules of security, limits and expiries
depend on the running release alone, because the header would loosen them.
"""

from flask import Flask, request

from domain.core.errors import DomainError
from domain.releases.schedule import SCHEDULE
from domain.releases.version import Release, parse_release
from web.services import services
from web.settings.reader import Settings

HEADER = "Platform-Release"
_HEADER_IN_ENVIRONMENT = "HTTP_PLATFORM_RELEASE"
#: Where a header of nonsense is refused; other URLs have nothing that a release changes.
_ROOMS = ("/api/", "/oauth/", "/-/")


#: The last release of which the schedule knows what it changes.
_LAST = max(parse_release(change.release) for change in SCHEDULE)


class NoSuchReleaseError(DomainError):
    """The header's value is not a release."""

    def __init__(self) -> None:
        """Describe the format."""
        super().__init__(f"{HEADER} must be a release such as {_LAST}.")


class LaterReleaseError(DomainError):
    """Nothing is known of the release that is asked for: to answer would promise something."""

    def __init__(self, last: Release) -> None:
        """Name the last release that can be asked for."""
        super().__init__(f"{HEADER} can be at most {last}: later changes are not known yet.")


def requested_release() -> Release:
    """Return the release that applies to this request.

    Raises NoSuchReleaseError or LaterReleaseError.
    """
    rehearsed = request.environ.get(_HEADER_IN_ENVIRONMENT)
    if rehearsed is None:
        return running_release()
    try:
        release = parse_release(rehearsed.strip())
    except ValueError as error:
        raise NoSuchReleaseError from error
    last = max(_LAST, running_release())
    if release > last:
        raise LaterReleaseError(last)
    return release


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
