"""Release that applies to a request: the running release or a previewed release.

A preview shows earlier or later formats of an interface. Rules for security, limits and expiry only
depend on the running release. Otherwise clients could loosen the rules by requesting another
release.
"""

from flask import request

from domain.core.errors import DomainError
from domain.releases.schedule import SCHEDULE
from domain.releases.version import Release, parse_release
from web.services import get_services
from web.settings.environment import Settings

RELEASE_HEADER = "Platform-Release"
_RELEASE_HEADER_KEY = "HTTP_PLATFORM_RELEASE"
#: URL prefixes where an invalid header is rejected. Releases change nothing at other URLs.
_CHECKED_PREFIXES = ("/api/", "/oauth/", "/-/")


#: Last release with known changes in the schedule.
_LAST_KNOWN_RELEASE = max(parse_release(change.release) for change in SCHEDULE)


class InvalidReleaseError(DomainError):
    """Error for a release header that is not a valid release."""

    def __init__(self) -> None:
        """Set the message, which describes the format."""
        super().__init__(f"{RELEASE_HEADER} must be a release such as {_LAST_KNOWN_RELEASE}.")


class UnknownReleaseError(DomainError):
    """Error for a requested release whose changes are not all known yet."""

    def __init__(self, release: Release) -> None:
        """Set the message, which names the last release that can be requested."""
        super().__init__(
            f"{RELEASE_HEADER} can be at most {release}: later changes are not known yet."
        )


def get_requested_release() -> Release:
    """Return the release that applies to this request.

    Raise InvalidReleaseError or UnknownReleaseError for an invalid header.
    """
    rehearsed = request.environ.get(_RELEASE_HEADER_KEY)
    if rehearsed is None:
        return get_running_release()
    try:
        release = parse_release(rehearsed.strip())
    except ValueError as error:
        raise InvalidReleaseError from error
    last = max(_LAST_KNOWN_RELEASE, get_running_release())
    if release > last:
        raise UnknownReleaseError(last)
    return release


def get_running_release() -> Release:
    """Return the running release of the instance."""
    return get_services().live_settings.get_derived_value(_parse_running_release)


def _parse_running_release(current: Settings) -> Release:
    return parse_release(current.release)


def check_release_header() -> None:
    """Reject a request with an invalid release header.

    At URLs whose responses are the same in every release, the header is ignored.
    """
    if _RELEASE_HEADER_KEY in request.environ and request.path.startswith(_CHECKED_PREFIXES):
        get_requested_release()
