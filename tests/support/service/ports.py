"""Ports for servers that tests start."""

import socket
from random import SystemRandom

#: Ports below the range of clients (from 32,768 on Linux, from 49,152 on macOS), so that no client
#: takes the port before the server listens.
_PORTS = range(15_000, 32_000)
_random = SystemRandom()


def free_port() -> int:
    """Return a free port of loopback."""
    while True:
        port = _random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
