"""Access to /metrics without a token: from this machine and from METRICS_NETWORKS.

Behind a proxy on the same machine every peer has a loopback address. It is only trusted if no proxy
can hide the client: there is no forwarding header beyond TRUSTED_PROXIES, and without a declared
proxy BASE_URL is on this machine.
"""

from collections.abc import Mapping
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from web.settings.reader import Settings

Address = IPv4Address | IPv6Address
_FORWARDING = ("X_FORWARDED_FOR", "X_FORWARDED_PROTO", "X_FORWARDED_HOST", "X_REAL_IP")
_HEADERS = tuple(f"HTTP_{name}" for name in (*_FORWARDING, "FORWARDED", "VIA"))


def is_from_trusted_network(environ: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether a request came from this machine or one of METRICS_NETWORKS."""
    address = _address(environ.get("REMOTE_ADDR", ""))
    is_forwarded = any(name in environ for name in _HEADERS)
    if address is None or (is_forwarded and not _is_clients_own(environ)):
        return False
    if any(address in network for network in _networks(settings.metrics_networks)):
        return True
    return address.is_loopback and not is_forwarded and _may_be_direct(settings)


def _is_clients_own(environ: Mapping[str, Any]) -> bool:
    """Return whether a trusted proxy set the address; see ProxyFix in `web/setup.py`."""
    original = environ.get("werkzeug.proxy_fix.orig", {})
    return bool(original) and original.get("REMOTE_ADDR") != environ["REMOTE_ADDR"]


def _may_be_direct(settings: Settings) -> bool:
    if settings.trusted_proxies:
        return True  # a proxy sets the client's IP address
    host = urlsplit(settings.base_url).hostname or ""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


@cache
def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
