"""The body of a request, which may still be on its way, and has to be here by a certain time."""

from contextlib import suppress
from http import HTTPStatus
from socket import SHUT_WR
from time import monotonic
from typing import Any

from flask import Flask, Response, request
from gevent import Timeout
from werkzeug.exceptions import RequestTimeout

#: What is left of a body that nobody wants is thrown away up to so many bytes; a connection on
#: which more would come is ended.
_MOST_LEFT = 64 * 1024
#: So many seconds a client that is told to go may take for its goodbye.
GOODBYE_SECONDS = 2.0
_TOO_SLOW = "The request took too long to come."
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class ArrivingBody:
    """A body as gunicorn reads it (PEP 3333: wsgi.input), with a deadline for all of it."""

    def __init__(self, message: Any, connection: Any, *, deadline: float) -> None:
        """Take gunicorn's request, its connection, and when the body has to be here."""
        self._message = message
        self._body = message.body
        self._connection = connection
        self._deadline = deadline
        self._count = 0
        self._has_ended = False
        self._is_unwanted = False
        self._most = 0
        # gunicorn would ask for it before anybody knows who sends it, and there is no other way to
        # have it wait (RFC 9110 section 10.1.1).
        self._is_to_be_asked_for = message._expected_100_continue  # noqa: SLF001
        message._expected_100_continue = False  # noqa: SLF001

    def read(self, size: int | None = None) -> bytes:
        """Return so many bytes, or all; fewer at the end."""
        piece: bytes = self._wait_for("read", size)
        self._has_ended = size is None or size < 0 or len(piece) < size
        return piece

    def readline(self, size: int | None = None) -> bytes:
        """Return a line."""
        line: bytes = self._wait_for("readline", size)
        return line

    def readlines(self, _hint: int | None = None) -> list[bytes]:
        """Return all lines."""
        return list(self)

    def __iter__(self) -> Any:
        """Go through the lines."""
        return iter(self.readline, b"")

    def leave(self, declared: int | None) -> None:
        """Have done with it: the answer is there. `declared` is its length if that is known.

        Closing a connection on unread data makes the sender see a reset instead of the answer; so a
        little is read and thrown away, and for more the connection ends with the answer.
        """
        self._is_unwanted = True
        self._most = self._count + _MOST_LEFT
        left = _MOST_LEFT if declared is None else declared - self._count
        if not self._has_ended and left > (0 if self._is_to_be_asked_for else _MOST_LEFT):
            self.end_connection()

    def end_connection(self) -> None:
        """Let the answer be the last on its connection."""
        self._message.force_close()

    def _wait_for(self, read: str, size: int | None) -> Any:
        if self._is_unwanted and self._count > self._most:
            say_goodbye(self._connection)
            raise self._too_slow()
        if self._is_to_be_asked_for:
            self._is_to_be_asked_for = False
            self._connection.sendall(_GO_ON)
        try:
            with Timeout(max(0.0, self._deadline - monotonic()), self._too_slow()):
                piece = getattr(self._body, read)(size)
        except (RequestTimeout, TimeoutError):
            self.end_connection()
            raise
        self._count += len(piece)
        return piece

    def _too_slow(self) -> Exception:
        if self._is_unwanted:
            return TimeoutError(_TOO_SLOW)
        return RequestTimeout(_TOO_SLOW)


def say_goodbye(client: Any) -> None:
    """Say that nothing more comes, and listen for a moment (RFC 9112 section 9.6)."""
    with suppress(OSError), Timeout(GOODBYE_SECONDS, TimeoutError()):
        client.shutdown(SHUT_WR)
        while client.recv(65_536):
            pass


def leave_unread_bodies(app: Flask) -> None:
    """Have done with the body of each request when its answer is there."""
    app.after_request(_leave)


def _leave(response: Response) -> Response:
    environ = request.environ
    body = environ["wsgi.input"]
    if isinstance(body, ArrivingBody):
        is_chunked = "HTTP_TRANSFER_ENCODING" in environ
        body.leave(None if is_chunked else int(environ.get("CONTENT_LENGTH") or 0))
        if response.status_code >= HTTPStatus.BAD_REQUEST and "Connection" in response.headers:
            body.end_connection()  # gunicorn takes no notice of what the answer says
    return response
