"""Kinds of settings that say where requests of the service may go."""

from ipaddress import ip_network

from domain.outgoing_hosts import NamedHosts
from web.settings.kinds import Kind


def networks() -> Kind[str]:
    """Allow an empty list or networks in CIDR notation."""

    def read(text: str) -> str:
        return ", ".join(str(ip_network(part.strip())) for part in text.split(",") if part.strip())

    return Kind(read, "a comma-separated list of networks such as 10.0.0.0/8, fd00::/8")


def hosts_with_ports() -> Kind[str]:
    """Allow an empty list or hosts with a port, or a range of ports, each."""

    def read(text: str) -> str:
        return str(NamedHosts.parse(text))

    return Kind(
        read,
        "a comma-separated list of hosts with ports such as chat.internal:443, 10.1.2.3:8000-8010",
    )
