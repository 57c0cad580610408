"""The IP addresses that outgoing requests may reach.

Addresses outside the public Internet are blocked, so URLs specified by users cannot reach services
on this machine, in its network or in its cloud. The OUTGOING_PRIVATE_ADDRESSES setting allows
exceptions, and the OUTGOING_CONTACT_HOSTS setting allows exceptions for contacts.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import inet_aton

from domain.core.errors import InvalidError
from domain.delivery.outgoing.host_lists import HostList
from domain.delivery.outgoing.urls import OutgoingUrl

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: Networks in the special-purpose address registries (RFC 6890), and other addresses that clouds
#: use internally, each with the kind of its addresses.
_SPECIAL_NETWORKS: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), words)
    for network, words in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared address (carrier-grade NAT)"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "an internal address of the cloud provider"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a benchmarking address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("64:ff9b::/96", "an address translated to IPv4 (NAT64)"),
        ("64:ff9b:1::/48", "an address translated to IPv4 (NAT64)"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a documentation address"),
        ("2002::/16", "an address translated to IPv4 (6to4)"),
        ("3fff::/20", "a documentation address"),
    )
)
#: Network with all publicly routed IPv6 addresses.
_PUBLIC_V6 = IPv6Network("2000::/3")


@dataclass(frozen=True)
class AddressPolicy:
    """The addresses that may be reached: public addresses, allowed networks and listed hosts."""

    allowed: tuple[Network, ...] = ()
    hosts: HostList = field(default_factory=HostList)
    #: Name of the setting that allows networks or hosts.
    setting: str = "OUTGOING_PRIVATE_ADDRESSES"

    @classmethod
    def from_networks(cls, networks: str) -> "AddressPolicy":
        """Return a policy that also allows the networks in a comma-separated list."""
        return _parse_policy(networks)

    @classmethod
    def from_contact_hosts(cls, hosts: str) -> "AddressPolicy":
        """Return the policy for contacts, with the hosts in OUTGOING_CONTACT_HOSTS."""
        return cls(hosts=HostList.from_text(hosts), setting="OUTGOING_CONTACT_HOSTS")

    @property
    def remedy(self) -> str:
        """Second sentence of the error message for a blocked address."""
        return f"only {self.setting} can allow this"

    def allows_connection(self, address: Address, host: str, port: int) -> bool:
        """Return whether a connection to an address of a host is permitted."""
        is_listed = any(self.hosts.has_host(name, port) for name in (host, str(address)))
        return is_listed or self.find_blocked_address_kind(address) is None

    def find_blocked_address_kind(self, address: Address) -> str | None:
        """Return the kind of an address if it must not be reached, otherwise None."""
        if any(address in network for network in self.allowed):
            return None
        words = next((words for network, words in _SPECIAL_NETWORKS if address in network), None)
        if words is None and isinstance(address, IPv6Address) and address not in _PUBLIC_V6:
            return "a reserved address"
        return words


@cache
def _parse_policy(networks: str) -> AddressPolicy:
    return AddressPolicy(
        tuple(ip_network(part.strip()) for part in networks.split(",") if part.strip())
    )


def parse_literal_address(host: str) -> Address | None:
    """Return the IP address of a host name that needs no DNS, such as `127.1` or `localhost`.

    Return None for a name that only DNS can resolve.
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return IPv4Address("127.0.0.1")
    with suppress(ValueError):
        found = ip_address(name.partition("%")[0])
        return getattr(found, "ipv4_mapped", None) or found
    with suppress(OSError, ValueError):
        # Connections also accept other notations of IPv4 addresses, such as 127.1.
        return IPv4Address(inet_aton(name)) if name[:1].isdecimal() else None
    return None


def check_outgoing_url_allowed(url: OutgoingUrl, networks: str, *, field: str = "url") -> None:
    """Check that a URL contains no blocked IP address.

    `networks` is the value of the OUTGOING_PRIVATE_ADDRESSES setting. A host name is resolved and
    checked when a request is sent. Raise InvalidError for a blocked address.
    """
    check_url_allowed(url, AddressPolicy.from_networks(networks), field=field)


def check_url_allowed(url: OutgoingUrl, policy: AddressPolicy, *, field: str) -> None:
    """Check that a URL contains no IP address that the policy blocks.

    Raise InvalidError for a blocked address.
    """
    address = parse_literal_address(url.host)
    if address is not None and not policy.allows_connection(address, url.host, url.port):
        message = (
            f"The URL cannot be reached: {url.host} is "
            f"{policy.find_blocked_address_kind(address)}. Enter a public address, or ask an "
            f"administrator to allow this address in {policy.setting}."
        )
        raise InvalidError(message, field=field)
