"""Threads of the web server that stay with a connection for as long as it keeps them busy."""

from collections import deque
from typing import Any

from gunicorn.http import wsgi
from gunicorn.workers.gthread import TConn

from web.unhurried_worker import UnhurriedWorker, is_readable

#: How long a thread waits for the next request of its connection, in milliseconds. Those who take
#: longer are the poller's to wait for; nobody else waits longer than this because a thread did.
NEXT_REQUEST_MS = 2

#: Longer bodies are sent by themselves: copying them would cost more than another call.
LARGEST_JOINED_BYTES = 64 * 1024


class JoinedResponse(wsgi.Response):  # type: ignore[misc]
    """An answer whose head goes out with the beginning of its body, in one call of the system."""

    headers_sent: bool
    _head = b""

    def send_headers(self) -> None:
        """Make the head, and keep it until there is something of the body, or the end.

        Whoever breaks before that can still be answered 500.
        """
        if not (self.headers_sent or self._head):
            lines = [
                *self.default_headers(),
                *[f"{name}: {value}\r\n" for name, value in self.headers],
            ]
            self._head = f"{''.join(lines)}\r\n".encode("latin-1")

    def _emit_body(self, data: bytes) -> None:
        if self.chunked or len(data) > LARGEST_JOINED_BYTES:
            self._send_head()
            super()._emit_body(data)
        else:
            self.sock.sendall(self._rest_of_head() + data)

    def sendfile(self, respiter: Any) -> bool:
        """Send a file without reading it, if that can be had: its head goes first."""
        self.send_headers()
        self._send_head()
        return bool(super().sendfile(respiter))

    def close(self) -> None:
        """End the answer: one without a body has its head sent here."""
        self.send_headers()
        self._send_head()
        super().close()

    def _send_head(self) -> None:
        if not self.headers_sent:
            self.sock.sendall(self._rest_of_head())

    def _rest_of_head(self) -> bytes:
        rest, self._head = self._head, b""
        self.headers_sent = True
        return rest


class StayingWorker(UnhurriedWorker):
    """Gunicorn's threads (gthread), which hand a connection back after each request, but for this.

    To hand it back and be given it again takes two changes of threads, a pipe and four calls of the
    system: a fifth of what an empty view takes. A thread goes on by itself where the next request
    is there at once and nobody waits for a thread.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: deque[TConn] = deque()

    def init_process(self) -> None:
        """Begin to serve."""
        # Else each of dozens a request is looked up by its name and asked for its value.
        self.cfg.__dict__.update({name: one.get() for name, one in self.cfg.settings.items()})
        # There is no setting for it.
        wsgi.Response = JoinedResponse
        super().init_process()

    def run(self) -> None:
        """Serve until told to stop, or until the parent is gone."""
        try:
            super().run()
        finally:
            # Who has lost the parent was not told: a busy connection would keep its thread, and
            # the thread the process, for ever.
            self.alive = False

    def enqueue_req(self, conn: TConn) -> None:
        """Have a thread serve a connection that has something to say."""
        self._waiting.append(conn)
        super().enqueue_req(conn)

    def handle(self, conn: TConn) -> Any:
        """Serve requests of a connection, in a thread; return what is to become of it."""
        self._waiting.popleft()
        kept = super().handle(conn)
        while kept is True and self.alive and not self._waiting and _has_more(conn):
            kept = super().handle(conn)
        return kept


def _has_more(conn: TConn) -> bool:
    if conn.parser.unreader.buf.getvalue():
        return True
    conn.data_ready = is_readable(conn, NEXT_REQUEST_MS)
    return bool(conn.data_ready)
