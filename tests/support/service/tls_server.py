"""A TLS server with configurable settings, which sends a word on each connection."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

WORD = b"hello"


def lax_context(certificate: Path) -> ssl.SSLContext:
    """Return a context that accepts any protocol, key and cipher suite."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(certificate)
    return context


@contextmanager
def running_server(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Hand each connection to `answer`, one after the other; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_serve, args=(listener, answer), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, suppress(OSError):
                client.settimeout(30)
                answer(client)


@contextmanager
def running_tls_server(context: ssl.SSLContext) -> Iterator[int]:
    """Send a word to each client after the handshake; yield the port."""

    def answer(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as wrapped:
            wrapped.sendall(WORD)

    with running_server(answer) as port:
        yield port
