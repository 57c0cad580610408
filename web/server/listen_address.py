"""Address on which the web server listens."""

import socket

_ALL_OF_IPV6, _ALL_OF_IPV4 = "::", "0.0.0.0"  # noqa: S104 - possible values of HOST


def get_listening_host(host: str) -> str:
    """Return the address to listen on for a value of HOST.

    `::` means IPv6 and IPv4, or only IPv4 if IPv6 is not available.
    """
    if host != _ALL_OF_IPV6:
        return host
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as attempt:
            attempt.bind((host, 0))
    except OSError:
        return _ALL_OF_IPV4
    return host
