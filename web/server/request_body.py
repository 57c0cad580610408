"""Request bodies with a deadline, and graceful closing of connections with unread bodies."""

from contextlib import suppress
from http import HTTPStatus
from socket import SHUT_WR
from time import monotonic
from typing import Any

from flask import Response, request
from gevent import Timeout
from werkzeug.exceptions import RequestTimeout

#: Maximum number of unread body bytes that are discarded. If more bytes are unread, the connection
#: is closed.
_MAX_DISCARDED_BYTES = 64 * 1024
#: Seconds in which a client must close its side of a connection.
GRACEFUL_CLOSE_SECONDS = 2.0
_CONTINUE_RESPONSE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyTimeoutError(RequestTimeout):
    """Error for a body that was not received in time."""

    description = "The request did not arrive in time."


class DeadlineBody:
    """`wsgi.input` of a request (PEP 3333) with a deadline for the whole body."""

    def __init__(self, message: Any, connection: Any, *, deadline: float) -> None:
        """Store gunicorn's request, its connection, and the deadline as monotonic time."""
        self._message = message
        self._body = message.body
        self._connection = connection
        self._deadline = deadline
        self._seconds: float | None = None
        self._count = 0
        #: Declared length of the body, or None if it is not declared, as in a chunked body.
        self._declared: int | None = getattr(message.body.reader, "length", None)
        self._has_ended = False
        self._is_unwanted = False
        self._most = 0
        # gunicorn would send 100 Continue before the request is authenticated, and has no option to
        # delay it (RFC 9110 section 10.1.1).
        self._expects_continue = message._expected_100_continue  # noqa: SLF001 - see above
        message._expected_100_continue = False  # noqa: SLF001 - see above

    def read(self, size: int | None = None) -> bytes:
        """Return up to `size` bytes, or the whole body if no size is given."""
        piece: bytes = self._wait_for_body_data("read", size)
        self._has_ended = size is None or size < 0 or len(piece) < size
        return piece

    def readline(self, size: int | None = None) -> bytes:
        """Return the next line of the body, or up to `size` bytes of the line."""
        line: bytes = self._wait_for_body_data("readline", size)
        return line

    def readlines(self, _hint: int | None = None) -> list[bytes]:
        """Return the remaining lines of the body."""
        return list(self)

    def __iter__(self) -> Any:
        """Iterate over the lines."""
        return iter(self.readline, b"")

    def keep_readable(self, *, seconds: float) -> None:
        """Keep the body readable after the view has returned, with a time limit for each read."""
        self._seconds = seconds

    @property
    def is_streamed(self) -> bool:
        """True if the body is read after the view has returned."""
        return self._seconds is not None

    def discard_rest(self, declared: int | None) -> None:
        """Discard the rest of the body after the response.

        `declared` is the body's length, or None if it is unknown. Closing a connection with unread
        data sends a reset, which can hide the response from the client. A small remainder is
        therefore read and discarded. If more is left, the connection is closed after the response.
        """
        self._is_unwanted = True
        self._most = self._count + _MAX_DISCARDED_BYTES
        left = _MAX_DISCARDED_BYTES if declared is None else declared - self._count
        if not self._has_ended and left > (0 if self._expects_continue else _MAX_DISCARDED_BYTES):
            self.close_after_response()

    def close_after_response(self) -> None:
        """Close the connection after this response."""
        self._message.force_close()

    def _wait_for_body_data(self, read: str, size: int | None) -> Any:
        if self._is_unwanted and self._count > self._most:
            close_gracefully(self._connection)
            raise TimeoutError(BodyTimeoutError.description)
        if self._expects_continue:
            self._expects_continue = False
            self._connection.sendall(_CONTINUE_RESPONSE)
        if self._count == self._declared:  # nothing to wait for
            self._has_ended = True
            return b""
        left = self._deadline - monotonic() if self._seconds is None else self._seconds
        try:
            with Timeout(max(0.0, left), TimeoutError if self._is_unwanted else BodyTimeoutError):
                piece = getattr(self._body, read)(size)
        except (BodyTimeoutError, TimeoutError):
            self.close_after_response()
            raise
        self._count += len(piece)
        return piece


def close_gracefully(client: Any) -> None:
    """Shut down writing, and read until the client closes or the time is up (RFC 9112, 9.6)."""
    with suppress(OSError), Timeout(GRACEFUL_CLOSE_SECONDS, TimeoutError()):
        client.shutdown(SHUT_WR)
        while client.recv(65_536):
            pass


def discard_unread_body(response: Response) -> Response:
    """Discard the unread body of the current request."""
    environ = request.environ
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody) and not body.is_streamed:
        is_chunked = "HTTP_TRANSFER_ENCODING" in environ
        body.discard_rest(None if is_chunked else int(environ.get("CONTENT_LENGTH") or 0))
        if response.status_code >= HTTPStatus.BAD_REQUEST and "Connection" in response.headers:
            body.close_after_response()  # gunicorn ignores the response's Connection header
    return response
