"""A pooler that gives a server to another client after each transaction, as pgbouncer can.

It speaks just enough of Postgres' protocol for that: a client is let in without being asked, and
its messages go to whichever server was put back last.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from queue import LifoQueue
from threading import Thread

_LET_IN = (
    b"R" + struct.pack("!II", 8, 0)
    + b"S" + struct.pack("!I", 4 + 21) + b"client_encoding\0UTF8\0"
    + b"Z" + struct.pack("!I", 5) + b"I"
)  # fmt: skip
_SSL = struct.pack("!II", 8, 80_877_103)


def _read(wire: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        more = wire.recv(count - len(read))
        if not more:
            raise ConnectionError
        read += more
    return read


def _message(wire: socket.socket) -> bytes:
    head = _read(wire, 5)
    return head + _read(wire, struct.unpack("!I", head[1:])[0] - 4)


def _server(path: str, user: str, database: str) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(path)
    words = f"user\0{user}\0database\0{database}\0\0".encode()
    wire.sendall(struct.pack("!II", 8 + len(words), 196_608) + words)
    while _message(wire)[:1] != b"Z":
        pass
    return wire


def _serve(client: socket.socket, servers: "LifoQueue[socket.socket]") -> None:
    with client, suppress(ConnectionError, OSError):
        start = _read(client, 8)
        if start == _SSL:
            client.sendall(b"N")
            start = _read(client, 8)
        _read(client, struct.unpack("!I", start[:4])[0] - 8)
        client.sendall(_LET_IN)
        while (asked := _message(client))[:1] != b"X":
            _transaction(client, asked, servers)


def _transaction(client: socket.socket, asked: bytes, servers: "LifoQueue[socket.socket]") -> None:
    server = servers.get()
    try:
        while True:
            server.sendall(asked)
            is_asked_for_an_answer = asked[:1] in b"QS"
            while is_asked_for_an_answer:
                answered = _message(server)
                client.sendall(answered)
                if answered[:1] == b"Z":
                    if answered[5:] == b"I":
                        return
                    break
            asked = _message(client)
    finally:
        servers.put(server)


@contextmanager
def transaction_pooler(path: str, user: str, database: str, size: int = 3) -> Iterator[int]:
    """Run one in front of a server's socket; gives its port."""
    with ExitStack() as stack:
        servers: LifoQueue[socket.socket] = LifoQueue()
        for _ in range(size):
            servers.put(stack.enter_context(_server(path, user, database)))
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _address = listening.accept()
                    Thread(target=_serve, args=(client, servers), daemon=True).start()

        Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
