"""Git requests that are written byte by byte, for misbehaving clients."""

import socket
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.service.live import LiveGatebell
from tests.support.wire.kept_connection import build_request_head

#: Size of the receive buffer, which is smaller than any pack in the tests.
_BUFFER = 4096


def build_request_headers(service: str, project: str, token: str, *lines: str) -> bytes:
    """Return the headers of a request for a service; without a token it is anonymous."""
    basic = b64encode(f"x:{token}".encode()).decode()
    given = [f"Content-Type: application/x-{service}-request"]
    given += [f"Authorization: Basic {basic}"] if token else []
    return build_request_head(f"/{project}.git/{service}", *given, *lines, method="POST")


def build_clone_body(commit: str) -> bytes:
    """Return a body of version 0 that requests everything below a commit."""
    line = f"want {commit} side-band-64k ofs-delta\n".encode()
    return b"%04x" % (len(line) + 4) + line + b"0000" + b"0009done\n"


def clone_request(project: str, token: str, commit: str) -> bytes:
    """Return a complete request for everything."""
    body = build_clone_body(commit)
    return (
        build_request_headers("git-upload-pack", project, token, f"Content-Length: {len(body)}")
        + body
    )


@contextmanager
def send_without_reading(live: LiveGatebell, request: bytes) -> Iterator[socket.socket]:
    """Send a request without reading the response."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        client.connect(("127.0.0.1", live.port))
        client.sendall(request)
        yield client


def reset_connection(client: socket.socket) -> None:
    """Reset a connection, as a machine does after a power failure."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
