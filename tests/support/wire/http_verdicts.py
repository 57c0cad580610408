"""Reports how servers divide bytes into requests: gunicorn's own parser, and a running server."""

import json
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from gunicorn.config import Config
from gunicorn.http.errors import (
    ExpectationFailed,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser

from tests.support.wire.kept_connection import KeptConnection

_PATIENCE_SECONDS = 30
#: Seconds without data after which a proxy waits for the rest of a request.
_WAITING_SECONDS = 3
_STATUSES = (
    (LimitRequestLine, 414),
    (LimitRequestHeaders, 431),
    (ExpectationFailed, 417),
    (UnsupportedTransferCoding, 501),
    (ParseException, 400),
)


class Verdict(NamedTuple):
    """A server's interpretation of the bytes of a connection."""

    #: Complete requests as `METHOD target body`.
    requests: tuple[str, ...]
    #: Status with which the next request is rejected, or None.
    status: int | None = None

    def __str__(self) -> str:
        rejected = () if self.status is None else (str(self.status),)
        return " | ".join((*self.requests, *rejected))


def described(method: str, target: str, body: bytes) -> str:
    """Return the text for a request in a verdict."""
    return f"{method} {target} {body.decode('latin-1')}".rstrip()


def gunicorn_requests(pieces: Iterable[bytes]) -> Iterator[tuple[Request, bytes]]:
    """Yield the requests that gunicorn's own parser finds, each with its body.

    Errors of that parser are raised. A truncated body ends the iteration.
    """
    config = Config()
    for name, limit in (("line", 8190), ("fields", 100), ("field_size", 16_380)):
        config.set(f"limit_request_{name}", limit)
    # The parser in Python, because the other one is not installed with gunicorn.
    config.set("http_parser", "python")
    for request in RequestParser(config, iter(pieces), ("127.0.0.1", 50_000)):
        declared = dict(request.headers).get("CONTENT-LENGTH", "0")
        try:
            body = request.body.read()
        except OSError:
            return
        if len(body) < int(declared):
            return
        yield request, body


def verdict_of_gunicorn(given: bytes) -> Verdict:
    """Return the verdict of gunicorn's parser."""
    found: list[str] = []
    try:
        for request, body in gunicorn_requests([given]):
            found.append(described(request.method, request.uri, body))
            if request.should_close():
                break
    except ParseException as error:
        status = next(status for kind, status in _STATUSES if isinstance(error, kind))
        return Verdict(tuple(found), status)
    except OSError:  # The data ends in the middle of the headers.
        pass
    return Verdict(tuple(found))


def verdict_of_server(port: int, given: bytes, *, piece: int = 65_536) -> Verdict:
    """Return the verdict of a server of `plain_app` that receives the bytes in pieces."""
    return verdict_of_responses(_exchange(port, given, piece=piece))


def verdict_of_proxy(port: int, given: bytes) -> Verdict:
    """Return the verdict of a proxy in front of such a server, and of both together.

    A proxy drops the requests of clients that have closed their side, so one more request ends the
    connection.
    """
    last = b"GET /echo?last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    expected = verdict_of_gunicorn(given + last)
    is_cut_short = expected.status is None and not str(expected).endswith("/echo?last")
    patience = _WAITING_SECONDS if is_cut_short else _PATIENCE_SECONDS
    return verdict_of_responses(_exchange(port, given + last, patience=patience))


def verdict_of_responses(received: bytes) -> Verdict:
    """Return the verdict that the responses of /echo show."""
    responses = list(_responses(received))
    seen = [json.loads(body) for status, body in responses if status < 400]
    return Verdict(_whole(seen), next((code for code, _ in responses if code >= 400), None))


def requests_since_the_last_time(port: int) -> tuple[str, ...]:
    """Return the complete requests that /echo of a server has received since the last call."""
    with KeptConnection(port) as connection:
        return _whole(json.loads(connection.get("/tell").body))


def _whole(seen: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(
        described(each["method"], each["target"], each["body"].encode("latin-1"))
        for each in seen
        if each["is_whole"]
    )


def _exchange(port: int, given: bytes, *, piece: int = 65_536, patience: float = 0) -> bytes:
    """Send all bytes, and return all data until the server closes the connection.

    With patience, the client does not close its side, and waits for this number of seconds at most.
    """
    received, timeout = b"", patience or _PATIENCE_SECONDS
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
        # A server that rejects the beginning may close the connection before the end is sent.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            for begin in range(0, len(given), piece):
                client.sendall(given[begin : begin + piece])
            if not patience:
                client.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError, TimeoutError):
            while came := client.recv(65_536):
                received += came
    return received


def _responses(received: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the status and the body of each final response."""
    while received.startswith(b"HTTP/"):
        head, _, received = received.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head.lower())
        body = received[: int(length[1]) if length else 0]
        received = received[len(body) :]
        if not head.startswith(b"HTTP/1.1 100 "):
            yield int(head.split()[1]), body
    if received:  # HTTP/0.9 had no headers.
        yield 200, received
