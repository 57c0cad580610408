"""Groups IP addresses by client for rate limits.

An IPv6 client, such as a household, usually has a whole network of addresses.
"""

from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network

#: Length in bits of an IPv6 prefix whose addresses count as one client, such as a household.
_IPV6_PREFIX_LENGTH = 64


@lru_cache(maxsize=4096)
def get_client_network(address: str) -> str:
    """Return the network prefix that all IP addresses of a client share."""
    try:
        parsed = ip_address(address)
    except ValueError:  # The address belongs to a Unix socket, or a proxy sent an invalid address.
        return f"unknown-{sha256(address.encode()).hexdigest()[:16]}"
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    if isinstance(parsed, IPv6Address):
        return str(ip_network((int(parsed), _IPV6_PREFIX_LENGTH), strict=False))
    return str(parsed)
