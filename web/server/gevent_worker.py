"""The web server's worker: gunicorn's own for gevent, and a time for all that a client does.

Each connection has a greenlet, which waits for its client and holds up nobody else. gunicorn lets
it wait for ever: for a handshake, for a body, for somebody to read the answer. Here every wait has
an end; what sits in the listen queue is answered before the server stops; and who breaks HTTP
itself is told so in JSON.
"""

import os
import ssl
from contextlib import suppress
from errno import ECONNRESET
from functools import partial
from http import HTTPStatus
from socket import SHUT_RD
from time import monotonic
from typing import Any, NamedTuple

import gevent
import orjson
from gevent.event import Event
from gevent.local import local
from gevent.pool import Pool
from gevent.server import StreamServer
from gevent.socket import wait_read
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.sock import ssl_context
from gunicorn.workers.base import Worker
from gunicorn.workers.ggevent import GeventWorker
from werkzeug.exceptions import ServiceUnavailable

from web.server.arriving_body import GOODBYE_SECONDS, ArrivingBody, say_goodbye
from web.server.early_signals import let_through

#: With so few places left for connections, whoever has been silent longest has to go.
_LEAST_PLACES = 10
_RETRY_AFTER = 2
#: Longer pieces are sent by themselves: copying them would cost more than another call.
LARGEST_JOINED_BYTES = 64 * 1024


class HeadTooSlowError(Exception):
    """The head of a request took too long to come."""


_STATUSES: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], HTTPStatus], ...] = (
    ((InvalidResponseHeader, InvalidResponseHeaderName), HTTPStatus.INTERNAL_SERVER_ERROR),
    (LimitRequestLine, HTTPStatus.REQUEST_URI_TOO_LONG),
    (LimitRequestHeaders, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    (ExpectationFailed, HTTPStatus.EXPECTATION_FAILED),
    (UnsupportedTransferCoding, HTTPStatus.NOT_IMPLEMENTED),
    (ParseException, HTTPStatus.BAD_REQUEST),
    (HeadTooSlowError, HTTPStatus.REQUEST_TIMEOUT),
)


class Door(StreamServer):
    """Where connections come in."""

    def __init__(self, *args: Any, patience: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._patience = patience

    def wrap_socket_and_handle(self, client_socket: Any, address: Any) -> None:
        """Serve a client that speaks TLS, if it shakes hands in time."""
        try:
            with gevent.Timeout(self._patience, TimeoutError()):
                client = self.wrap_socket(client_socket, **self.ssl_args)  # type: ignore[misc, arg-type]
        except OSError:
            return
        with client:
            self.handle(client, address)

    def let_in_who_waits(self) -> None:
        """Take everybody who has connected, and close."""
        while not self.full() and (come := self.do_read()):
            self.do_handle(*come)
        self.close()


class JoinedAnswer:
    """A connection on which the head of an answer goes out with the beginning of its body.

    gunicorn sends one after the other, and each wakes the client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._head = b""
        self._has_begun = False

    def sendall(self, piece: bytes) -> None:
        """Send a piece; the first one waits for the second, or the end."""
        if self._has_begun:
            self._client.sendall(piece)
        elif not self._head:
            self._head = piece
        elif len(piece) > LARGEST_JOINED_BYTES:
            self.end()
            self._client.sendall(piece)
        else:
            self._has_begun = True
            self._client.sendall(self._head + piece)

    def sendfile(self, *args: Any, **kwargs: Any) -> int:
        """Send a file."""
        self.end()
        sent: int = self._client.sendfile(*args, **kwargs)
        return sent

    def end(self) -> None:
        """Send the head if it was not sent."""
        if not self._has_begun:
            self._has_begun = True
            self._client.sendall(self._head)

    def __getattr__(self, name: str) -> Any:
        """Be a connection in all else."""
        return getattr(self._client, name)


class _Place(NamedTuple):
    """What gunicorn wants to know of a listener."""

    name: Any

    def getsockname(self) -> Any:
        return self.name


class PunctualWorker(GeventWorker):  # type: ignore[misc]
    """Serves each connection in a greenlet, and waits for none longer than it may take."""

    #: So many seconds a request may take to come, and as many again to be worked on.
    request_seconds = 30.0

    alive: bool
    wsgi: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: What the greenlet of a connection knows: its client, and the request in hand.
        self._here = local()
        #: Clients of whom nothing is there to be read, and until when they may say nothing; the
        #: longest silent first.
        self._silent: dict[Any, float] = {}
        self._places = Pool(self.worker_connections)
        self._told = Event()

    def init_process(self) -> None:
        """Begin to serve."""
        # Else each of dozens a request is looked up by its name and asked for its value.
        self.cfg.__dict__.update({name: one.get() for name, one in self.cfg.settings.items()})
        super().init_process()

    def init_signals(self) -> None:
        """Take signals from here on."""
        super().init_signals()
        let_through()

    def load_wsgi(self) -> None:
        """Load the app, and give each request only so much time in it."""
        super().load_wsgi()
        self.wsgi = partial(_call_in_time, self.wsgi, 2 * self.request_seconds)

    def run(self) -> None:
        """Serve until told to stop, or until the parent is gone; then answer who is here."""
        doors = [self._open(each) for each in self.sockets]
        while self.alive:
            self.notify()
            self._leave_silent_ones(monotonic())
            self._told.wait(1.0)
        for door in doors:
            door.let_in_who_waits()
        self._finish()

    def notify(self) -> None:
        """Tell the parent that we are well, and stop if there is none."""
        Worker.notify(self)
        self.alive = self.alive and self.ppid == os.getppid()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop, but gently."""
        super().handle_exit(sig, frame)
        self._told.set()

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Serve a connection."""
        self._here.client, self._here.request = client, None
        super().handle(listener, client, addr)

    def timeout_ctx(self) -> gevent.Timeout:
        """Wait for the first word of a request; then for the rest of its head, in what follows."""
        here = self._here
        if self._has_more(here.client, here.request):
            gevent.sleep(0)  # others want their turn as well
        else:
            kept, new = self.cfg.keepalive, min(self.cfg.keepalive, self.request_seconds)
            self._await_word(here.client, kept if here.request else new)
        here.began = monotonic()
        return gevent.Timeout(self.request_seconds, HeadTooSlowError())

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:
        """Answer a request whose head is there."""
        self._here.request = req
        answer = JoinedAnswer(sock)
        req.body = ArrivingBody(req, sock, deadline=self._here.began + self.request_seconds)
        sock.settimeout(self.request_seconds)  # for whoever does not read the answer
        try:
            super().handle_request(listener_name, req, answer, addr)
            answer.end()
        except StopIteration:
            answer.end()
            say_goodbye(sock)
            raise
        except TimeoutError as error:
            raise ConnectionResetError(ECONNRESET, "The answer was not read.") from error

    def handle_error(self, _req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer who broke HTTP itself, or was too slow; nobody knows who it is."""
        if isinstance(exc, ssl.SSLError):
            return
        status = _status_of(exc)
        if status is HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.error("Error handling request", exc_info=exc)
        else:
            self.log.info("%s for %s: %s", status.value, (addr or [""])[0], type(exc).__name__)
        with suppress(OSError):
            client.sendall(_refusal(status))
            say_goodbye(client)

    def _open(self, listener: Any) -> Door:
        # Those who were let in last are served when the listener is closed, and has no name.
        handle = partial(self.handle, _Place(listener.getsockname()))
        patience = self.request_seconds
        tls = {"ssl_context": ssl_context(self.cfg)} if self.cfg.is_ssl else {}
        door = Door(listener, handle=handle, spawn=self._places, patience=patience, **tls)
        door.max_accept = 1 if self.cfg.workers > 1 else door.max_accept
        door.start()
        return door

    def _finish(self) -> None:
        end = monotonic() + self.cfg.graceful_timeout
        goodbye = monotonic() + min(GOODBYE_SECONDS, self.cfg.graceful_timeout / 2)
        while len(self._places) and monotonic() < end:
            if monotonic() > goodbye:
                self._leave_silent_ones(float("inf"))
            self.notify()
            gevent.sleep(0.05)
        if len(self._places):
            self.log.warning("%d requests did not end in time", len(self._places))
            self._places.kill(timeout=1)

    def _has_more(self, client: Any, last: Any) -> bool:
        """Tell whether something of the next request was read with the last one."""
        is_buffered = last is not None and bool(last.unreader.buf.getvalue())
        return is_buffered or (isinstance(client, ssl.SSLSocket) and client.pending() > 0)

    def _await_word(self, client: Any, seconds: float) -> None:
        if self._places.free_count() < _LEAST_PLACES and self._silent:
            _hang_up(next(iter(self._silent)))
        self._silent[client] = monotonic() + seconds
        try:
            wait_read(client.fileno())
        finally:
            del self._silent[client]

    def _leave_silent_ones(self, moment: float) -> None:
        for client, until in tuple(self._silent.items()):
            if until < moment:
                _hang_up(client)


def _hang_up(client: Any) -> None:
    with suppress(OSError):
        client.shutdown(SHUT_RD)


def _call_in_time(app: Any, seconds: float, environ: Any, start_response: Any) -> Any:
    too_long = ServiceUnavailable("This took too long.", retry_after=_RETRY_AFTER)
    with gevent.Timeout(seconds, too_long):
        return app(environ, start_response)


def _status_of(error: BaseException) -> HTTPStatus:
    fitting = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(fitting, HTTPStatus.INTERNAL_SERVER_ERROR)


def _refusal(status: HTTPStatus) -> bytes:
    is_ours = status is HTTPStatus.INTERNAL_SERVER_ERROR
    said = {
        "message": f"{status.value} {status.phrase}",
        "error": "server_error" if is_ours else "invalid_request",
        "error_description": status.description or status.phrase,
    }
    body = orjson.dumps(said)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*head, "", "")).encode("latin-1") + body
