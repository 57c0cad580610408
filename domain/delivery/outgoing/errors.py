"""Errors in outgoing requests, with messages that explain the failure.

The messages start with a lowercase letter and have no full stop, so that sentences can contain
them. They contain nothing that the destination sent.
"""

from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address


class OutgoingError(Exception):
    """Error for a failed request to another service. The message of the error is the reason."""


class HostNotFoundError(OutgoingError):
    """Error for a host name that has no IP address."""

    def __init__(self, host: str) -> None:
        """Build the message from the host name."""
        super().__init__(f"the host name {host} was not found in DNS")


class AddressBlockedError(OutgoingError):
    """Error for a host name that resolves to blocked IP addresses."""

    def __init__(
        self,
        host: str,
        address: IPv4Address | IPv6Address,
        kind: str,
        *,
        remedy: str,
    ) -> None:
        """Build the message from the host name, an address, the kind of address and a remedy."""
        is_literal = host == str(address)
        subject = f"{address} is" if is_literal else f"{host} resolves to {address}, which is"
        super().__init__(f"{subject} {kind}; {remedy}")


class ConnectionFailedError(OutgoingError):
    """Error for a connection that could not be established, or was closed before the response."""


class TlsFailedError(OutgoingError):
    """Error for a TLS connection that the client or the server rejected."""


class DeadlineExceededError(OutgoingError):
    """Error for a request that took too long."""

    def __init__(self, seconds: float) -> None:
        """Build the message from the deadline in seconds."""
        super().__init__(f"no complete response was received within {seconds:g} seconds")


class ResponseTooLargeError(OutgoingError):
    """Error for a response that exceeds the maximum size."""

    def __init__(self, maximum: int) -> None:
        """Build the message from the maximum size in bytes."""
        super().__init__(f"the response is larger than {maximum:,} bytes")


def describe_status_problem(status: int) -> str | None:
    """Return the problem that a status code indicates, or None for codes from 200 to 299."""
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
