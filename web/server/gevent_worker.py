"""Worker of the web server: gunicorn's gevent worker with a deadline for every wait.

Each connection has a greenlet, so slow clients do not block others. Unlike gunicorn's own worker,
this worker also has deadlines for TLS handshakes, request bodies and unread responses. It serves
the listen backlog before it stops, and responds to malformed requests in JSON.
"""

import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from errno import ECONNRESET
from functools import partial
from http import HTTPStatus
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, SIGQUIT, SIGTERM, pthread_sigmask
from socket import AF_UNIX, SHUT_RD
from time import monotonic
from typing import Any, NamedTuple

import gevent
import orjson
from gevent.event import Event
from gevent.local import local
from gevent.pool import Pool
from gevent.server import StreamServer
from gevent.socket import wait_read
from gunicorn.glogging import Logger
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.workers.base import Worker
from gunicorn.workers.ggevent import GeventWorker
from werkzeug.exceptions import ServiceUnavailable

from web.server.request_body import GRACEFUL_CLOSE_SECONDS, DeadlineBody, close_gracefully
from web.server.shutdown_flag import begin_shutdown
from web.server.tls import ServedCertificate, describe_handshake_failure, get_served_certificate
from web.standard_streams import get_dropped_line_count

_STOP_SIGNALS = frozenset({SIGINT, SIGQUIT, SIGTERM})
#: Number of free connections below which the oldest handshake or idle connection is ended.
_MIN_FREE_CONNECTIONS = 10
_RETRY_AFTER_SECONDS = 2
#: Seconds between two checks for idle connections, a new certificate and the parent.
_CHECK_INTERVAL_SECONDS = 2.0
#: Seconds between two checks while the process stops.
_STOPPING_CHECK_INTERVAL_SECONDS = 0.2
#: Minimum number of seconds between two warnings that nearly all connections are in use.
_WARNING_INTERVAL_SECONDS = 60.0
#: Size in bytes above which chunks are sent separately, since copying them costs more than another
#: system call.
MAX_BUFFERED_BYTES = 64 * 1024


class RequestHeadTimeoutError(Exception):
    """Error for a request head that was not received in time."""


class ApplicationTimeoutError(ServiceUnavailable):
    """Error for an application that has not responded in time."""

    def __init__(self) -> None:
        super().__init__("This took too long.", retry_after=_RETRY_AFTER_SECONDS)


_ERROR_STATUSES: tuple[
    tuple[type[BaseException] | tuple[type[BaseException], ...], HTTPStatus], ...
] = (
    ((InvalidResponseHeader, InvalidResponseHeaderName), HTTPStatus.INTERNAL_SERVER_ERROR),
    (LimitRequestLine, HTTPStatus.REQUEST_URI_TOO_LONG),
    (LimitRequestHeaders, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    (ExpectationFailed, HTTPStatus.EXPECTATION_FAILED),
    (UnsupportedTransferCoding, HTTPStatus.NOT_IMPLEMENTED),
    (ParseException, HTTPStatus.BAD_REQUEST),
    (RequestHeadTimeoutError, HTTPStatus.REQUEST_TIMEOUT),
)


class _HeadKeepingRequest(Request):  # type: ignore[misc]
    """Request that keeps the beginning of a request line that is too long."""

    def read_line(self, unreader: Any, buf: bytearray, limit: int = 0) -> Any:
        """Read the request line, and attach its beginning to the error if it is too long."""
        try:
            return super().read_line(unreader, buf, limit)
        except LimitRequestLine as error:
            error.received = bytes(buf[:limit])
            raise


RequestParser.mesg_class = _HeadKeepingRequest


class Listener(StreamServer):
    """Listener that serves its backlog before it closes."""

    def accept_backlog_and_close(self) -> None:
        """Accept the connections in the backlog, and then close the listener."""
        while not self.full() and (come := self.do_read()):
            self.do_handle(*come)
        self.close()


class BufferedConnection:
    """Connection that sends the head of a response together with the first chunk of its body.

    gunicorn would send them separately, which would wake the client twice.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._head = b""
        self._has_begun = False

    def sendall(self, piece: bytes) -> None:
        """Send a chunk of the response.

        The first chunk is delayed until the second chunk is sent or the response ends.
        """
        if self._has_begun:
            self._client.sendall(piece)
        elif not self._head:
            self._head = piece
        elif len(piece) > MAX_BUFFERED_BYTES:
            self.send_delayed_head()
            self._client.sendall(piece)
        else:
            self._has_begun = True
            self._client.sendall(self._head + piece)

    def sendfile(self, *args: Any, **kwargs: Any) -> int:
        """Send the delayed head, followed by a file."""
        self.send_delayed_head()
        sent: int = self._client.sendfile(*args, **kwargs)
        return sent

    def send_delayed_head(self) -> None:
        """Send the head if it was delayed."""
        if not self._has_begun:
            self._has_begun = True
            self._client.sendall(self._head)

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the connection."""
        return getattr(self._client, name)


class _ListenerName(NamedTuple):
    """Stand-in that only provides the name of a listener, which may already be closed."""

    name: Any

    def getsockname(self) -> Any:
        return self.name


class DeadlineGeventWorker(GeventWorker):  # type: ignore[misc]
    """Gunicorn's gevent worker, with a deadline for every wait on a client."""

    #: Seconds in which a request must be received. Handling it may take twice as long.
    request_seconds = 30.0
    #: Seconds for which the worker keeps serving after the signal to stop.
    shutdown_delay_seconds = 0.0

    alive: bool
    wsgi: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Client and request of the current greenlet's connection.
        self._current = local()
        #: Idle connections with the times at which they are closed, longest idle first.
        self._idle: dict[Any, float] = {}
        #: Greenlets in the middle of a TLS handshake, oldest first.
        self._handshakes: dict[Any, None] = {}
        self._connections = Pool(self.worker_connections)
        self._stop_requested = Event()
        #: Time of the last warning that connections are closed to make room.
        self._warned_at = float("-inf")
        #: Number of dropped log lines that are already counted.
        self._counted_lines = 0

    def init_process(self) -> None:
        """Prepare the process and start serving."""
        # Settings become attributes, since gunicorn looks up dozens of them for each request.
        self.cfg.__dict__.update({name: one.get() for name, one in self.cfg.settings.items()})
        for listener in self.sockets:
            listener.set_inheritable(False)  # child programs must not keep the port
        super().init_process()

    def init_signals(self) -> None:
        """Install the signal handlers and unblock the signals."""
        super().init_signals()
        unblock_signals()

    def load_wsgi(self) -> None:
        """Load the app, and enforce a time limit on each of its requests."""
        super().load_wsgi()
        self.wsgi = partial(call_with_timeout, self.wsgi, 2 * self.request_seconds)

    def run(self) -> None:
        """Serve until the worker stops or the parent is gone, then finish open requests."""
        listeners = [self._open(each) for each in self.sockets]
        while self.alive:
            self.notify()
            self._close_idle_connections(monotonic())
            self._refresh_certificate()
            self.count_dropped_lines()
            self._stop_requested.wait(_CHECK_INTERVAL_SECONDS)
        self._serve_during_shutdown_delay()
        for listener_server in listeners:
            listener_server.accept_backlog_and_close()
        self._wait_for_connections()

    def _serve_during_shutdown_delay(self) -> None:
        """Serve for another SHUTDOWN_DELAY_SECONDS, unless the parent is gone."""
        begin_shutdown()
        end = monotonic() + self.shutdown_delay_seconds
        while monotonic() < end and self.ppid == os.getppid():
            self.notify()
            gevent.sleep(min(_STOPPING_CHECK_INTERVAL_SECONDS, max(0.0, end - monotonic())))

    def notify(self) -> None:
        """Send the parent a heartbeat, and stop if the parent is gone."""
        Worker.notify(self)
        self.alive = self.alive and self.ppid == os.getppid()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Start a graceful stop."""
        super().handle_exit(sig, frame)
        self._stop_requested.set()

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Serve the requests of a connection."""
        self._current.client, self._current.request = client, None
        super().handle(listener, client, addr)

    def timeout_ctx(self) -> gevent.Timeout:
        """Wait for the first bytes of a request and return the timeout for the remaining head."""
        current = self._current
        if self._has_buffered_data(current.client, current.request):
            gevent.sleep(0)  # this lets other greenlets run
        else:
            kept, new = self.cfg.keepalive, min(self.cfg.keepalive, self.request_seconds)
            self._wait_for_request_data(current.client, kept if current.request else new)
        current.began = monotonic()
        return gevent.Timeout(self.request_seconds, RequestHeadTimeoutError)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:
        """Handle a request whose head was received."""
        self._current.request = req
        answer = BufferedConnection(sock)
        req.body = DeadlineBody(req, sock, deadline=self._current.began + self.request_seconds)
        sock.settimeout(self.request_seconds)  # applies to clients that do not read the response
        try:
            super().handle_request(listener_name, req, answer, addr)
            answer.send_delayed_head()
        except StopIteration:
            answer.send_delayed_head()
            close_gracefully(sock)
            raise
        except TimeoutError as error:
            raise ConnectionResetError(ECONNRESET, "The answer was not read.") from error

    def handle_error(self, _req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Respond to a request that is malformed or whose head was received too slowly."""
        if isinstance(exc, ssl.SSLError):
            return
        status = _get_error_status(exc)
        if status is HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.error(
                "Request could not be read because of an unexpected error.",
                exc_info=exc,
                extra={"event": "server.request_failed"},
            )
        else:
            self.log.info(
                "Request from %s was rejected with status %s: %s.",
                (addr or [""])[0],
                status.value,
                type(exc).__name__,
                extra={"event": "server.request_rejected"},
            )
        refusal = self._find_error_page(exc) or _build_error_response(status)
        with suppress(OSError):
            client.sendall(refusal)
            close_gracefully(client)

    def _find_error_page(self, error: BaseException) -> bytes | None:
        """Return the page for a URL that is too long, or None if the path has no page."""
        received: bytes = getattr(error, "received", b"")
        target = received.partition(b" ")[2].partition(b"?")[0]
        find_page = getattr(self.app.wsgi(), "extensions", {}).get("gatebell_long_requests")
        if find_page is None or not target.startswith(b"/"):
            return None
        try:
            page = find_page(target.decode("ascii"))
        except Exception:
            self.log.exception(
                "Error page for an overlong URL could not be created.",
                extra={"event": "server.error_page_failed"},
            )
            return None
        return None if page is None else _serialize_response(page)

    def _open(self, listener: Any) -> Listener:
        # The last connections are served after the listener is closed and has lost its name.
        handle = partial(self.handle, _ListenerName(listener.getsockname()))
        certificate = get_served_certificate()
        if certificate is not None and listener.family != AF_UNIX:
            handle = partial(self._handle_tls, certificate, handle)
        listener_server = Listener(listener, handle=handle, spawn=self._connections)
        listener_server.max_accept = 1 if self.cfg.workers > 1 else listener_server.max_accept
        listener_server.start()
        return listener_server

    def _wait_for_connections(self) -> None:
        patience = self.cfg.graceful_timeout - self.shutdown_delay_seconds
        end = monotonic() + patience
        goodbye = monotonic() + min(GRACEFUL_CLOSE_SECONDS, patience / 2)
        while len(self._connections) and monotonic() < end:
            if monotonic() > goodbye:
                self._close_idle_connections(float("inf"))
            self.notify()
            gevent.sleep(0.05)
        if len(self._connections):
            self.log.warning(
                "Shutdown ended %d requests that were not completed in time.",
                len(self._connections),
                extra={"event": "server.requests_canceled"},
            )
            self._connections.kill(timeout=1)

    def _has_buffered_data(self, client: Any, last: Any) -> bool:
        """Return whether a part of the next request was received with the last request."""
        is_buffered = last is not None and bool(last.unreader.buf.getvalue())
        return is_buffered or (isinstance(client, ssl.SSLSocket) and client.pending() > 0)

    def _handle_tls(
        self,
        certificate: ServedCertificate,
        handle: Callable[..., None],
        client: Any,
        address: Any,
    ) -> None:
        """Serve a TLS client if the handshake completes in time."""
        own = gevent.getcurrent()
        self._close_waiting_connection()
        self._handshakes[own] = None
        try:
            with gevent.Timeout(self.request_seconds, TimeoutError()):
                secured = certificate.context.wrap_socket(client, server_side=True)
        except OSError as error:
            reason = describe_handshake_failure(error)
            self.log.info(
                "TLS handshake with %s failed: %s.",
                (address or [""])[0],
                reason,
                extra={"event": "tls.handshake_failed"},
            )
            return
        finally:
            del self._handshakes[own]
        with secured:
            handle(secured, address)

    def _refresh_certificate(self) -> None:
        """Load a renewed certificate, and warn if the certificate expires soon."""
        certificate = get_served_certificate()
        if certificate is not None:
            certificate.reload_changed_files()
            certificate.log_expiry_warning()

    def count_dropped_lines(self) -> None:
        """Count the log lines that were dropped because no reader read them in time."""
        from web import metrics  # noqa: PLC0415 - the directory of the counters is set after the fork

        dropped = get_dropped_line_count()
        metrics.count_dropped_log_lines(dropped - self._counted_lines)
        self._counted_lines = dropped

    def _close_waiting_connection(self) -> None:
        """Close a connection that waits for its client if nearly all connections are in use."""
        if self._connections.free_count() >= _MIN_FREE_CONNECTIONS:
            return
        self._warn_of_full_pool()
        if self._handshakes:
            next(iter(self._handshakes)).kill(block=False)
        elif self._idle:
            _shut_down_reading(next(iter(self._idle)))

    def _warn_of_full_pool(self) -> None:
        """Log, at most once a minute, that waiting connections are closed."""
        if monotonic() - self._warned_at >= _WARNING_INTERVAL_SECONDS:
            self._warned_at = monotonic()
            self.log.warning(
                "Limit of %d client connections was nearly reached; the longest idle "
                "connections were closed.",
                self.worker_connections,
                extra={"event": "server.connections_nearly_exhausted"},
            )

    def _wait_for_request_data(self, client: Any, seconds: float) -> None:
        self._close_waiting_connection()
        self._idle[client] = monotonic() + seconds
        try:
            wait_read(client.fileno())
        finally:
            del self._idle[client]

    def _close_idle_connections(self, moment: float) -> None:
        for client, until in tuple(self._idle.items()):
            if until < moment:
                _shut_down_reading(client)


def _shut_down_reading(client: Any) -> None:
    with suppress(OSError):
        client.shutdown(SHUT_RD)


def call_with_timeout(app: Any, seconds: float, environ: Any, start_response: Any) -> Any:
    """Call an application, and stop it with status 503 after the given number of seconds.

    The traceback in the log then shows where the application was.
    """
    with gevent.Timeout(seconds, ApplicationTimeoutError):
        return app(environ, start_response)


def _get_error_status(error: BaseException) -> HTTPStatus:
    fitting = (status for kind, status in _ERROR_STATUSES if isinstance(error, kind))
    return next(fitting, HTTPStatus.INTERNAL_SERVER_ERROR)


def _build_error_response(status: HTTPStatus) -> bytes:
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


def _serialize_response(response: Any) -> bytes:
    """Return a response as bytes, for a connection that is closed afterwards."""
    headers = [f"{name}: {value}" for name, value in response.headers.items()]
    head = (f"HTTP/1.1 {response.status}", "Connection: close", *headers)
    body: bytes = response.get_data()
    return "\r\n".join((*head, "", "")).encode("latin-1") + body


class ServerLog(Logger):  # type: ignore[misc]
    """Gunicorn logger without an access log.

    The app logs requests itself (web/http/request_log.py). With a logging configuration, gunicorn
    would format an unused line for each request. That takes as long as looking up a token.
    """

    @property
    def access_log_enabled(self) -> bool:
        """False, because the app writes the request log."""
        return False

    def info(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log a message, unless it announces the start of gunicorn.

        gunicorn logs that message before the settings and the database are checked. If the start
        fails, the output should be a single message with the reason.
        """
        if not msg.startswith("Starting gunicorn"):
            super().info(msg, *args, **kwargs)


def block_signals_while_forking() -> None:
    """Block the stop signals in forked processes until they call `unblock_signals`."""
    os.register_at_fork(
        before=partial(pthread_sigmask, SIG_BLOCK, _STOP_SIGNALS), after_in_parent=unblock_signals
    )


def unblock_signals() -> None:
    """Unblock the stop signals, which `block_signals_while_forking` blocked."""
    pthread_sigmask(SIG_UNBLOCK, _STOP_SIGNALS)
