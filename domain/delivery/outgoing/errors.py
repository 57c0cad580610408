"""Why an outgoing request failed, in words of the service's own.

The texts continue a sentence that names the destination, and hold nothing that it has sent.
"""

from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address


class OutgoingError(Exception):
    """A request to another service failed; the text says why."""


class NameNotFoundError(OutgoingError):
    """The host name has no address."""

    def __init__(self, host: str) -> None:
        """Take the host name."""
        super().__init__(f"the name {host} was not found in DNS")


class AddressRefusedError(OutgoingError):
    """The host name leads to addresses that may not be reached."""

    def __init__(
        self,
        host: str,
        address: IPv4Address | IPv6Address,
        kind: str,
        *,
        remedy: str = "only OUTGOING_PRIVATE_ADDRESSES can allow that",
    ) -> None:
        """Take the host name, its first address, of what kind that is, and what allows it."""
        leads = "" if host == str(address) else f"{host} leads to "
        super().__init__(f"{leads}{address}, which is {kind}; {remedy}")


class ConnectionFailedError(OutgoingError):
    """No connection was made, or it was closed before a response."""


class TlsRefusedError(OutgoingError):
    """The TLS connection was refused by one of both sides."""


class DeadlineError(OutgoingError):
    """The request took too long."""

    def __init__(self, seconds: float) -> None:
        """Take the seconds that it was given."""
        super().__init__(f"there was no complete response within {seconds:g} seconds")


class TooLargeError(OutgoingError):
    """The response is larger than what is read of one."""

    def __init__(self, most: int) -> None:
        """Take the bytes that are read."""
        super().__init__(f"the response has more than {most:,} bytes")


def problem_with_status(status: int) -> str | None:
    """Return what is wrong with the status of a response; None for 200 to 299."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    known = status in HTTPStatus.__members__.values()
    words = f"{status} {HTTPStatus(status).phrase}" if known else str(status)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return (
            f"it answered {words}: redirects are not followed, so enter the URL that they lead to"
        )
    return f"it answered {words}"
