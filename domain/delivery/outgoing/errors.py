"""Reasons why an outgoing request failed, in the service's own words.

The texts start with a lowercase letter and have no full stop, so that sentences can contain them.
They contain nothing that the destination sent.
"""

from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address


class OutgoingError(Exception):
    """A failed request to another service. The text is the reason."""


class HostNotFoundError(OutgoingError):
    """The host name has no address."""

    def __init__(self, host: str) -> None:
        """Build the message with the host name."""
        super().__init__(f"the host name {host} was not found in DNS")


class AddressBlockedError(OutgoingError):
    """The host name resolves to addresses that must not be reached."""

    def __init__(
        self,
        host: str,
        address: IPv4Address | IPv6Address,
        kind: str,
        *,
        remedy: str = "only OUTGOING_PRIVATE_ADDRESSES can allow this",
    ) -> None:
        """Build the message with the host name, its first address, its kind and a remedy."""
        is_literal = host == str(address)
        subject = f"{address} is" if is_literal else f"{host} resolves to {address}, which is"
        super().__init__(f"{subject} {kind}; {remedy}")


class ConnectionFailedError(OutgoingError):
    """No connection could be established, or it was closed before a response."""


class TlsFailedError(OutgoingError):
    """One of the sides rejected the TLS connection."""


class DeadlineExceededError(OutgoingError):
    """The request took too long."""

    def __init__(self, seconds: float) -> None:
        """Build the message with the deadline in seconds."""
        super().__init__(f"no complete response was received within {seconds:g} seconds")


class ResponseTooLargeError(OutgoingError):
    """The response exceeds the maximum size."""

    def __init__(self, most: int) -> None:
        """Build the message with the maximum size in bytes."""
        super().__init__(f"the response is larger than {most:,} bytes")


def describe_status_problem(status: int) -> str | None:
    """Return the problem with the status of a response, or None for 200 to 299."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    known = status in HTTPStatus.__members__.values()
    words = f"{status} {HTTPStatus(status).phrase}" if known else str(status)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return (
            f"the server returned {words}: redirects are not followed, so enter the URL of the "
            "redirect target"
        )
    return f"the server returned {words}"
