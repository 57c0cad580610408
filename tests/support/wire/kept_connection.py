"""A connection for writing requests and reading responses byte by byte."""

import socket
import struct
from collections.abc import Iterator
from http.client import parse_headers
from types import TracebackType
from typing import NamedTuple, Self

#: Statuses of responses without a body (RFC 9110, section 6.4.1).
_WITHOUT_BODY = {204, 304}


class Answer(NamedTuple):
    """A complete response."""

    status: int
    headers: dict[str, str]
    body: bytes


def build_request_head(path: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Return the headers of a request, which is complete if no body follows."""
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
        """Send a GET request, and return the response."""
        self.socket.sendall(build_request_head(path, *lines))
        return self.answer()

    def answer(self, *, to: str = "GET") -> Answer:
        """Return the next response to a request with this method."""
        status = int(self._read.readline().split()[1])
        headers = {name.lower(): text for name, text in parse_headers(self._read).items()}
        if to == "HEAD" or status in _WITHOUT_BODY or status < 200:
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, b"".join(self._chunks()))
        length = int(headers.get("content-length", -1))
        return Answer(status, headers, self._read.read(length))

    def rest(self) -> bytes:
        """Return all data until the server closes the connection."""
        return self._read.read()

    @property
    def segments(self) -> int:
        """Number of received segments with data of a response (linux/tcp.h, tcp_info)."""
        known = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        (count,) = struct.unpack_from("I", known, offset=152)  # The field is tcpi_data_segs_in.
        assert isinstance(count, int)
        return count

    def vanish(self) -> None:
        """Reset the connection, as happens when a client loses its network."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._read.close()
        self.socket.close()

    def _chunks(self) -> Iterator[bytes]:
        # RFC 9112, section 7.1
        while size := int(self._read.readline(), 16):
            yield self._read.read(size)
            assert self._read.readline() == b"\r\n"
        assert self._read.readline() == b"\r\n"
