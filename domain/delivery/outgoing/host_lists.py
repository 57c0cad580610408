"""Hosts and ports that an administrator lists, such as chat.internal:443."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

_HOST_PATTERN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+):([0-9]{1,5})(?:-([0-9]{1,5}))?")
_HOST_NAME_PATTERN = re.compile(r"[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_])?")
_MAX_PORT = 65_535


@dataclass(frozen=True)
class _ListedHost:
    host: str
    first_port: int
    last_port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        end = "" if self.first_port == self.last_port else f"-{self.last_port}"
        return f"{host}:{self.first_port}{end}"


@dataclass(frozen=True)
class HostList:
    """A list of hosts, each with a port or a range of ports."""

    hosts: tuple[_ListedHost, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> "HostList":
        """Return the hosts in a comma-separated list.

        Raise ValueError if an entry is malformed.
        """
        return cls(tuple(_parse_entry(part.strip()) for part in text.split(",") if part.strip()))

    def __str__(self) -> str:
        """Return the list in the format that `from_text` parses."""
        return ", ".join(map(str, self.hosts))

    def has_host(self, host: str, port: int) -> bool:
        """Return whether the list contains a host name or an IP address with a port."""
        wanted = host.lower().rstrip(".")
        return any(
            each.host == wanted and each.first_port <= port <= each.last_port for each in self.hosts
        )

    def has_host_name(self, host: str, port: int | None) -> bool:
        """Return whether the list contains a host with a port.

        If `port` is None, any port matches.
        """
        if port is not None:
            return self.has_host(host, port)
        wanted = host.lower().rstrip(".")
        return any(each.host == wanted for each in self.hosts)


def _parse_entry(part: str) -> _ListedHost:
    found = _HOST_PATTERN.fullmatch(part)
    if found is None:
        raise ValueError(part)
    host, first, last = _parse_host(found[1]), int(found[2]), int(found[3] or found[2])
    if not 0 < first <= last <= _MAX_PORT:
        raise ValueError(part)
    return _ListedHost(host, first, last)


def _parse_host(text: str) -> str:
    try:
        return str(ip_address(text.strip("[]")))
    except ValueError:
        name = text.lower().rstrip(".")
        if not _HOST_NAME_PATTERN.fullmatch(name):
            raise
        return name
