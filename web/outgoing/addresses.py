"""Resolution of host names to addresses that outgoing requests may reach.

A host name is resolved only once, so that the checked addresses are also used for the connection.
"""

import socket
from collections.abc import Sequence
from ipaddress import ip_address

from domain.delivery.outgoing.errors import AddressBlockedError, HostNotFoundError
from domain.delivery.outgoing.ip_address_policy import Address, AddressPolicy


def resolve_allowed_addresses(host: str, port: int, policy: AddressPolicy) -> Sequence[Address]:
    """Resolve a host name once and return the permitted addresses in the resolver's order.

    Raise HostNotFoundError, or AddressBlockedError if no address is permitted.
    """
    found = _resolve_host_name(host, port)
    allowed = [each for each in found if policy.allows_connection(each, host, port)]
    if not allowed:
        kind = policy.find_blocked_address_kind(found[0]) or ""
        raise AddressBlockedError(host, found[0], kind, remedy=policy.remedy)
    return allowed


def _resolve_host_name(host: str, port: int) -> Sequence[Address]:
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise HostNotFoundError(host) from error
    found = [_parse_address(str(answer[4][0])) for answer in answers]
    if not found:
        raise HostNotFoundError(host)
    return list(dict.fromkeys(found))


def _parse_address(text: str) -> Address:
    """Parse an address, and convert an IPv4-mapped IPv6 address to IPv4."""
    address = ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
