"""HTTP proxy configured by OUTGOING_PROXY, for requests to public addresses."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLError
from urllib.parse import unquote, urlsplit

from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from domain.delivery.outgoing.errors import (
    AddressBlockedError,
    ConnectionFailedError,
    HostNotFoundError,
)
from domain.delivery.outgoing.ip_address_policy import AddressPolicy, parse_literal_address
from domain.delivery.outgoing.urls import OutgoingUrl
from web.outgoing.addresses import resolve_allowed_addresses

#: Pattern of http.client's error for a proxy that does not connect.
_REJECTED_TUNNEL = re.compile(r"Tunnel connection failed: ([1-5][0-9]{2})")
_PUBLIC_ADDRESSES = AddressPolicy()
#: Pattern for names outside the public DNS. These are names without a dot, and domains for private
#: networks (RFC 6762, RFC 8375 and ICANN's `internal`).
_PRIVATE_NAME = re.compile(r"[^.]+|.*\.(internal|local|localdomain|lan|home\.arpa)")


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """Address and credentials of an HTTP proxy."""

    host: str
    port: int
    #: Header with the username and password of the proxy. Empty without a user.
    headers: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_text(cls, url: str) -> "Proxy | None":
        """Parse a value of OUTGOING_PROXY, and return None if the value is empty."""
        if not url:
            return None
        parts = urlsplit(url)
        headers = {}
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return cls(host=parts.hostname or "", port=parts.port or 80, headers=headers)

    def open_tunnel(self, connection: HTTPConnection) -> None:
        """Connect to the host behind the proxy.

        Raise ConnectionFailedError if the proxy does not establish the connection.
        """
        try:
            connection.connect()
        except SSLError:
            raise  # the error comes from the service behind the proxy
        except (OSError, HTTPError) as error:
            rejected = _REJECTED_TUNNEL.search(str(error))
            reason = f"returned {rejected[1]}" if rejected else "cannot be reached"
            raise ConnectionFailedError(f"the proxy in OUTGOING_PROXY {reason}") from error


def is_direct_request(url: OutgoingUrl, policy: AddressPolicy) -> bool:
    """Return whether a request goes to allowed private addresses and bypasses the proxy.

    A name that this host cannot resolve is left to the proxy, since some hosts cannot resolve
    public names. Raise AddressBlockedError if all addresses of the host are excluded. Raise
    HostNotFoundError for a private-network name, which the proxy could find in its own network.
    """
    try:
        addresses = resolve_allowed_addresses(url.host, url.port, policy)
    except HostNotFoundError:
        _check_may_be_public(url.host, policy)
        return False
    return all(_PUBLIC_ADDRESSES.find_blocked_address_kind(each) is not None for each in addresses)


def _check_may_be_public(host: str, policy: AddressPolicy) -> None:
    """Check that a host that is not resolved here may be public.

    Raise AddressBlockedError for a private address, and HostNotFoundError for a private-network
    name.
    """
    address = parse_literal_address(host)  # such as `localhost.` and `127.0.0.1.`
    refusal = None if address is None else _PUBLIC_ADDRESSES.find_blocked_address_kind(address)
    if address is not None and refusal is not None:
        raise AddressBlockedError(host, address, refusal, remedy=policy.remedy)
    if address is None and _PRIVATE_NAME.fullmatch(host.rstrip(".")):
        raise HostNotFoundError(host)
