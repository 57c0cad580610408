"""Threads of the web server that wait for no client: not for a request, nor for a goodbye."""

import re
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from select import POLLIN, poll
from selectors import EVENT_READ
from socket import SHUT_WR, SO_RCVTIMEO, SOL_SOCKET
from struct import pack
from time import monotonic
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import _DEFER, TConn, ThreadWorker

#: How long a thread waits for more of a request, in milliseconds.
MORE_MS = 2

#: A longer request, its head included, is read by a thread: halves of a thousand connections shall
#: not take more than this many megabytes.
LONGEST_GATHERED_BYTES = 128 * 1024

#: How long the server goes on listening after its last word (RFC 9112 section 9.6), in seconds.
GOODBYE_SECONDS = 2

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*(\d{1,15})", re.IGNORECASE)
#: The body comes only when it is asked for (RFC 9110 section 10.1.1).
_EXPECTS = re.compile(rb"\nexpect:", re.IGNORECASE)


class UnhurriedWorker(ThreadWorker):  # type: ignore[misc]
    """Gunicorn's threads (gthread), but the poller does the waiting.

    There a new connection that says nothing holds a thread for five seconds, one that says half a
    request for as long as it likes, and one that the server has ended, and its client has not,
    holds up all others for two seconds.
    """

    #: How long a request may take to come, from its first word on.
    request_seconds = 30.0
    #: How long a thread that reads a long one waits for its next piece.
    piece_seconds = 5

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ending: deque[TConn] = deque()

    def handle(self, conn: TConn) -> Any:
        """Serve a request that is there as a whole; any other is the poller's to wait for."""
        if conn.cfg.is_ssl or conn.is_http2:
            conn.data_ready = conn.initialized or conn.data_ready or is_readable(conn, MORE_MS)
            return super().handle(conn) if conn.data_ready else _DEFER
        if not conn.initialized:
            conn.init()
            conn.sock.setsockopt(SOL_SOCKET, SO_RCVTIMEO, pack("ll", self.piece_seconds, 0))
        if _has_come(conn):
            conn.began = None
            return super().handle(conn)
        return _DEFER if self._may_take_longer(conn) else _refuse(conn)

    def on_client_socket_readable(self, conn: TConn, client: Any) -> None:
        """Serve a kept connection that the poller has found to say something."""
        conn.data_ready = True
        super().on_client_socket_readable(conn, client)

    def finish_request(self, conn: TConn, fs: Future[Any]) -> None:
        """Wait for a request, keep a connection, or end it."""
        result = None if fs.cancelled() or fs.exception() else fs.result()
        if result is _DEFER:
            self._put_off(conn)
        elif result:
            super().finish_request(conn, fs)
        else:
            self._end(conn)

    def murder_pending(self) -> None:
        """Close connections that have waited long enough: for a request, or for a goodbye."""
        while self.pending_conns and self.pending_conns[0].timeout <= monotonic():
            conn = self.pending_conns.popleft()
            self.poller.unregister(conn.sock)
            if conn.parser and conn.parser.unreader.buf.getvalue():
                _refuse(conn)
            self._end(conn)
        while self._ending and self._ending[0].timeout <= monotonic():
            self._close(self._ending[0])

    def _cap_keepalive(self, deadline: float) -> None:
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def _may_take_longer(self, conn: TConn) -> bool:
        if not conn.parser.unreader.buf.getvalue():
            return True  # It has not begun.
        conn.began = getattr(conn, "began", None) or monotonic()
        return bool(monotonic() < conn.began + self.request_seconds)

    def _put_off(self, conn: TConn) -> None:
        conn.timeout = monotonic() + (self.request_seconds if self.alive else GOODBYE_SECONDS)
        self.pending_conns.append(conn)
        conn.sock.settimeout(0)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _end(self, conn: TConn) -> None:
        self._ending.append(conn)
        conn.timeout = monotonic() + GOODBYE_SECONDS
        try:
            conn.sock.shutdown(SHUT_WR)
            conn.sock.settimeout(0)
            self.poller.register(conn.sock, EVENT_READ, partial(self._drain, conn))
        except (OSError, ValueError):  # The client has gone, or the thread has closed it already.
            self._close(conn)

    def _drain(self, conn: TConn, _socket: Any) -> None:
        try:
            if conn.sock.recv(65_536):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(conn)

    def _close(self, conn: TConn) -> None:
        self._ending.remove(conn)
        self.nr_conns -= 1
        with suppress(KeyError, ValueError):
            self.poller.unregister(conn.sock)
        conn.close()


def is_readable(conn: TConn, milliseconds: int) -> bool:
    """Whether the client says something, or has gone, before so much time is over."""
    waiting = poll()
    waiting.register(conn.sock, POLLIN)
    return bool(waiting.poll(milliseconds))


def _has_come(conn: TConn) -> bool:
    """Read what is there, and tell whether that is a request, or all that will come."""
    unreader = conn.parser.unreader
    said, has_more = unreader.take_buffered(), True
    is_ready, conn.data_ready = conn.data_ready, False
    while has_more and not is_whole(said):
        if not (is_ready or is_readable(conn, MORE_MS)):
            unreader.unread(said)
            return False
        is_ready = False
        piece = conn.sock.recv(65_536)
        said, has_more = said + piece, bool(piece)
    unreader.unread(said)
    return True


def is_whole(said: bytes) -> bool:
    """Whether a thread can serve the first request in this without waiting for the client.

    What is no request is left for gunicorn to refuse, as soon as it cannot become one.
    """
    end = _END_OF_HEAD.search(said)
    if end is None:
        return len(said) >= LONGEST_GATHERED_BYTES
    head = said[: end.start()]
    length = _LENGTH.search(head)
    if length is None or _EXPECTS.search(head):
        return True
    total = end.end() + int(length[1])
    # What is too long to gather may be too long for the service as well: it says so at once.
    return len(said) >= total or total > LONGEST_GATHERED_BYTES


def _refuse(conn: TConn) -> bool:
    status = HTTPStatus.REQUEST_TIMEOUT
    with suppress(OSError):
        util.write_error(conn.sock, status, status.phrase, "The request took too long to come.")
    return False
