"""A connection on which requests are written, and answers read, byte by byte."""

import socket
import struct
from collections.abc import Iterator
from http.client import parse_headers
from types import TracebackType
from typing import NamedTuple, Self

#: Answers that end with their head (RFC 9110, section 6.4.1).
_WITHOUT_BODY = {204, 304}


class Answer(NamedTuple):
    """One answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes


def asked(path: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Return the head of a request, which is all of it where no body follows."""
    head = (f"{method} {path} HTTP/{version}", "Host: localhost", *lines, "", "")
    return "\r\n".join(head).encode("latin-1")


class KeptConnection:
    """A connection to a server on a port of loopback; it waits 30 seconds at most."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._read = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._read.close()
        self.socket.close()

    def get(self, path: str, *lines: str) -> Answer:
        """Ask, and return the answer."""
        self.socket.sendall(asked(path, *lines))
        return self.answer()

    def answer(self, *, to: str = "GET") -> Answer:
        """Return the next answer, to a request with this method."""
        status = int(self._read.readline().split()[1])
        headers = {name.lower(): text for name, text in parse_headers(self._read).items()}
        if to == "HEAD" or status in _WITHOUT_BODY or status < 200:
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, b"".join(self._chunks()))
        length = int(headers.get("content-length", -1))
        return Answer(status, headers, self._read.read(length))

    def rest(self) -> bytes:
        """Return all that comes until the server closes."""
        return self._read.read()

    @property
    def segments(self) -> int:
        """How many pieces have come that held something of an answer (linux/tcp.h, tcp_info)."""
        known = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        (count,) = struct.unpack_from("I", known, offset=152)  # tcpi_data_segs_in
        assert isinstance(count, int)
        return count

    def vanish(self) -> None:
        """Close without a goodbye, as a client does whose network is gone."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._read.close()
        self.socket.close()

    def _chunks(self) -> Iterator[bytes]:
        # RFC 9112, section 7.1
        while size := int(self._read.readline(), 16):
            yield self._read.read(size)
            assert self._read.readline() == b"\r\n"
        assert self._read.readline() == b"\r\n"
