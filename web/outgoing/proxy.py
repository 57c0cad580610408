"""The HTTP proxy of OUTGOING_PROXY, which requests to public addresses go through."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLError
from urllib.parse import unquote, urlsplit

from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from domain.outgoing.addresses import AddressPolicy
from domain.outgoing.errors import ConnectionFailedError, NameNotFoundError
from domain.outgoing_urls import OutgoingUrl
from web.outgoing.addresses import allowed_addresses

#: How http.client tells of a proxy that does not connect.
_REJECTED = re.compile(r"Tunnel connection failed: ([1-5][0-9]{2})")
_PUBLIC = AddressPolicy()


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A proxy that speaks HTTP."""

    host: str
    port: int
    #: Its user name and password.
    headers: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "Proxy | None":
        """Read a value of OUTGOING_PROXY, which may be empty."""
        if not url:
            return None
        parts = urlsplit(url)
        headers = {}
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return cls(host=parts.hostname or "", port=parts.port or 80, headers=headers)

    def connect(self, connection: HTTPConnection) -> None:
        """Connect through the proxy; raise ConnectionFailedError if the proxy does not."""
        try:
            connection.connect()
        except SSLError:
            raise  # of the service behind the proxy
        except (OSError, HTTPError) as error:
            rejected = _REJECTED.search(str(error))
            reason = f"answered {rejected[1]}" if rejected else "cannot be reached"
            raise ConnectionFailedError(f"the proxy of OUTGOING_PROXY {reason}") from error


def is_direct(url: OutgoingUrl, policy: AddressPolicy) -> bool:
    """Return whether a request goes to a network of OUTGOING_PRIVATE_ADDRESSES, without the proxy.

    Raises AddressRefusedError for a host whose addresses are all excluded. A name that is unknown
    here is left to the proxy, which alone may know the names of the Internet.
    """
    try:
        addresses = allowed_addresses(url.host, url.port, policy)
    except NameNotFoundError:
        return False
    return all(_PUBLIC.refusal(each) is not None for each in addresses)
