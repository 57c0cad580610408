"""Clients that send slowly, or never finish."""

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from tests.support.alerts.senders import Endpoint
from tests.support.wire.kept_connection import KeptConnection, build_request_head

_PAUSE = 0.1


def head(endpoint: Endpoint, *lines: str, key: str = "") -> bytes:
    """Return the head of a webhook, with the right key by default."""
    given = (f"Authorization: Bearer {key or endpoint.key}", "Content-Type: application/json")
    return build_request_head(endpoint.path, *given, *lines, method="POST")


def webhook_of(endpoint: Endpoint, title: str) -> bytes:
    """Return a complete webhook."""
    body = json.dumps({"title": title}).encode()
    return head(endpoint, f"Content-Length: {len(body)}") + body


def trickled_length(endpoint: Endpoint) -> bytes:
    """Return the beginning of a long body whose length is known."""
    return head(endpoint, "Content-Length: 900000") + b'{"title": "'


def trickled_chunks(endpoint: Endpoint) -> bytes:
    """Return the beginning of a chunked body."""
    return head(endpoint, "Transfer-Encoding: chunked") + b'5000\r\n{"title": "'


def trickled_after_expect(endpoint: Endpoint) -> bytes:
    """Return a head that expects 100-continue, and the beginning of its body."""
    return head(endpoint, "Content-Length: 900000", "Expect: 100-continue") + b'{"title": "'


def trickled_after_rejection(endpoint: Endpoint) -> bytes:
    """Return the beginning of a body that is too large."""
    return head(endpoint, "Content-Length: 9000000") + b'{"title": "'


def trickled_head(endpoint: Endpoint) -> bytes:
    """Return half a head."""
    return head(endpoint, "X-Long: x")[:-4]


KINDS: dict[str, Callable[[Endpoint], bytes]] = {
    "length": trickled_length,
    "chunked": trickled_chunks,
    "expect": trickled_after_expect,
    "rejected": trickled_after_rejection,
    "head": trickled_head,
}


@contextmanager
def trickling(
    port: int, said: bytes, crowd: int, *, pause: float = _PAUSE
) -> Iterator[list[KeptConnection]]:
    """Start this number of requests, and continue each byte by byte during the block."""
    end = Event()
    with ExitStack() as opened:
        clients = [opened.enter_context(KeptConnection(port)) for _ in range(crowd)]
        for client in clients:
            client.socket.sendall(said)
        thread = Thread(target=_trickle, args=(clients, end, pause))
        thread.start()
        try:
            yield clients
        finally:
            end.set()
            thread.join()


def _trickle(clients: list[KeptConnection], end: Event, pause: float) -> None:
    going = list(clients)
    while going and not end.wait(pause):
        for client in tuple(going):
            try:
                client.socket.send(b"x", socket.MSG_DONTWAIT)
            except OSError:  # The request was rejected long ago.
                going.remove(client)


@contextmanager
def silent(port: int, crowd: int, *, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open this number of connections, send the given bytes on each, and then nothing."""
    with ExitStack() as opened:
        clients = []
        for _ in range(crowd):
            client = socket.create_connection(("127.0.0.1", port), timeout=30)
            opened.callback(client.close)
            client.sendall(said)
            clients.append(client)
        yield clients


def half_a_handshake() -> bytes:
    """Return the first message of a TLS client."""
    ours, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(ours, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError
