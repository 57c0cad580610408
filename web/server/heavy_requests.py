"""Relaying of heavy requests, such as searches, exports and large bodies, to other processes.

A web process serves all its requests in one thread, so a compute-intensive request delays the
others. A heavy request is therefore relayed to a heavy process. The heavy process runs the same
application with a lower priority, while the web process only passes bytes between the heavy process
and the client.

The processes share a channel, which gunicorn's first process opens before it forks. For each heavy
request, a web process creates a pair of sockets and sends one socket over the channel. Requests
that wait in the channel are not lost if a heavy process ends, since gunicorn starts another heavy
process. The pair carries messages:

- to the heavy process: the environment of the request (`_ENVIRON`), and requested chunks of the
  body (`_BODY`) or the reason why there are no more chunks (`_BODY_ERROR`);
- to the web process: the number of requested body bytes (`_BODY_REQUEST`), the status and headers
  (`_HEAD`), chunks of the response (`_CHUNK`), and its end (`_END`).

If a socket is closed before the end, the other process or its client is gone.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import ECONNRESET
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, lockf
from io import BufferedReader, RawIOBase
from struct import Struct
from tempfile import TemporaryFile
from time import monotonic
from typing import Any, cast

import gevent
import orjson
from flask import Response
from gevent.event import Event
from gevent.pool import Pool
from werkzeug.datastructures import Headers

from domain.core.errors import OverloadedError
from web.server.gevent_worker import call_with_timeout
from web.server.request_body import BodyTimeoutError, discard_unread_body

_ENVIRON, _BODY, _BODY_ERROR, _BODY_REQUEST, _HEAD, _CHUNK, _END = b"EBXWHPZ"
_MESSAGE_HEADER = Struct("=BI")
#: Maximum number of body bytes in a message. Reading them takes less than a millisecond.
_CHUNK_BYTES = 16 * 1024
#: Maximum number of requests per web process that wait for a response to begin.
MAX_WAITING_REQUESTS = 64
_RETRY_AFTER_SECONDS = 2
#: Types of environment values that are sent to the heavy process. Values of other types are objects
#: that exist only in the web process.
_FORWARDED_TYPES = frozenset({str, bool, float})
#: Increase in niceness for heavy processes, which lowers their priority.
_NICENESS = 10
#: Seconds by which the heavy process times out before the web process. The client then receives the
#: error of the heavy process.
_TIMEOUT_LEAD_SECONDS = 0.5
_CHECK_INTERVAL_SECONDS = 2.0
_STOPPING_CHECK_INTERVAL_SECONDS = 0.05


def count_heavy_processes(web_concurrency: int) -> int:
    """Return the number of heavy processes in addition to the web processes."""
    return max(1, web_concurrency // 2)


def prepare_heavy_process(worker: Any) -> None:
    """Stop listening in a heavy process right after its fork, and lower its priority.

    Otherwise clients could connect while the server stops, and no process would accept them. This
    happens before the application is loaded, which may take seconds with a low priority.
    """
    for listener in worker.sockets:
        listener.close()
    worker.sockets = []
    with suppress(OSError):
        os.nice(_NICENESS)


class HeavyChannel:
    """Channel from the web processes of a server to its heavy processes."""

    def __init__(self) -> None:
        """Open the channel, which is inherited by processes that are forked later."""
        self._sending, self._receiving = socket.socketpair()
        #: File on which each web process holds a shared lock as long as it lives.
        self._lives = TemporaryFile()  # noqa: SIM115 - open as long as the server runs

    def close_channel(self) -> None:
        """Close the channel in this process, but not in other forked processes."""
        self._sending.close()
        self._receiving.close()
        self._lives.close()

    def become_web_process(self, app: Any, *, request_seconds: float) -> None:
        """Make this process relay the heavy requests of an application."""
        lockf(self._lives, LOCK_SH)
        self._receiving.close()
        app.relay = Relay(_attach_to_event_loop(self._sending), seconds=request_seconds)

    def become_heavy_process(self, worker: Any, app: Any) -> None:
        """Make this process handle only the heavy requests of an application."""
        self._sending.close()
        channel = _attach_to_event_loop(self._receiving)
        worker.run = HeavyProcess(worker, channel, app, is_wanted=self._has_web_processes).run

    def _has_web_processes(self) -> bool:
        try:
            lockf(self._lives, LOCK_EX | LOCK_NB)
        except OSError:
            return True
        lockf(self._lives, LOCK_UN)
        return False


#: Channel that gunicorn's first process has opened, if any.
_open_channels: list[HeavyChannel] = []


def open_heavy_channel() -> HeavyChannel:
    """Open the channel, which after a reload replaces the channel of the earlier processes."""
    while _open_channels:
        _open_channels.pop().close_channel()
    _open_channels.append(HeavyChannel())
    return _open_channels[0]


def _attach_to_event_loop(inherited: socket.socket) -> socket.socket:
    """Return a socket that the event loop of this process watches."""
    return socket.socket(fileno=inherited.detach())


class _MessageConnection:
    """Connection that sends and receives messages over one end of a socket pair."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = connection.makefile("rb")

    def send_message(self, kind: int, content: bytes = b"") -> None:
        """Send a message of the given kind."""
        self._connection.sendall(_MESSAGE_HEADER.pack(kind, len(content)) + content)

    def receive_message(self) -> tuple[int, bytes]:
        """Return the next message.

        Raise ConnectionResetError if the other end is closed.
        """
        header = self._received.read(_MESSAGE_HEADER.size)
        if len(header) == _MESSAGE_HEADER.size:
            kind, size = _MESSAGE_HEADER.unpack(header)
            content = self._received.read(size)
            if len(content) == size:
                return kind, content
        raise ConnectionResetError(ECONNRESET, "The other process ended the request.")

    def close_connection(self) -> None:
        """Close the connection and its reader."""
        self._received.close()
        self._connection.close()


class RelayedResponse:
    """Response from a heavy process, callable by Flask as a WSGI application."""

    def __init__(self, head: bytes, messages: _MessageConnection) -> None:
        """Parse the status and headers, and keep the connection, which delivers the body."""
        self.status, headers = orjson.loads(head)
        self.headers = Headers([(name, value) for name, value in headers])
        self._messages = messages

    @property
    def status_code(self) -> int:
        """Status code as a number."""
        return int(self.status.partition(" ")[0])

    def __call__(self, _environ: Any, start_response: Callable[..., Any]) -> Iterator[bytes]:
        """Start the response and return its chunks."""
        start_response(self.status, list(self.headers))
        return self._iterate_chunks()

    def _iterate_chunks(self) -> Iterator[bytes]:
        try:
            while (message := self._messages.receive_message())[0] == _CHUNK:
                yield message[1]
        finally:
            self._messages.close_connection()


class Relay:
    """Callable that relays the heavy requests of a web process."""

    def __init__(self, channel: socket.socket, *, seconds: float) -> None:
        """Store the channel and the maximum duration of a request."""
        self._channel = channel
        self._seconds = seconds
        self._waiting = 0

    def __call__(self, environ: dict[str, Any]) -> RelayedResponse:
        """Return the response to a request.

        Raise OverloadedError if too many requests are waiting or the heavy process ends.
        """
        if self._waiting >= MAX_WAITING_REQUESTS:
            message = (
                "Too many searches, exports and large bodies are waiting. Try again in a moment."
            )
            raise OverloadedError(message, retry_after=_RETRY_AFTER_SECONDS)
        self._waiting += 1
        try:
            messages = self._open_connection()
            try:
                head = self._exchange_messages(environ, messages)
            except BaseException:
                messages.close_connection()
                raise
        except OSError as error:
            message = "The process that answers this request ended. Try again in a moment."
            raise OverloadedError(message, retry_after=_RETRY_AFTER_SECONDS) from error
        finally:
            self._waiting -= 1
        response = RelayedResponse(head, messages)
        discard_unread_body(cast("Response", response))
        return response

    def _open_connection(self) -> _MessageConnection:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._channel, [b"\0"], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return _MessageConnection(ours)

    def _exchange_messages(self, environ: dict[str, Any], messages: _MessageConnection) -> bytes:
        """Send the request and the requested parts of its body, and return the response head.

        An OSError always means that the heavy process has failed. Client errors are sent to the
        heavy process as messages.
        """
        until = monotonic() + self._seconds - _TIMEOUT_LEAD_SECONDS
        told = {name: value for name, value in environ.items() if type(value) in _FORWARDED_TYPES}
        messages.send_message(_ENVIRON, orjson.dumps([told, until]))
        while (message := messages.receive_message())[0] == _BODY_REQUEST:
            messages.send_message(*self._read_body(environ["wsgi.input"], int(message[1])))
        return message[1]

    def _read_body(self, body: Any, wanted: int) -> tuple[int, bytes]:
        """Return the message with the next chunk of a body.

        While the request waits for its client, it does not count as waiting for a heavy process.
        """
        self._waiting -= 1
        try:
            return _BODY, body.read(wanted)
        except BodyTimeoutError:
            return _BODY_ERROR, b"timeout"
        except OSError:
            return _BODY_ERROR, b"gone"
        finally:
            self._waiting += 1


class _RelayedBody(RawIOBase):
    """Request body in a heavy process, read by the web process on demand."""

    def __init__(self, messages: _MessageConnection) -> None:
        self._messages = messages

    def readable(self) -> bool:
        """Return True, because the body can be read."""
        return True

    def readinto(self, room: Any) -> int:
        """Request the next chunk of the body, copy it to `room`, and return its length."""
        self._messages.send_message(_BODY_REQUEST, str(min(len(room), _CHUNK_BYTES)).encode())
        kind, content = self._messages.receive_message()
        if kind == _BODY_ERROR:
            if content == b"timeout":
                raise BodyTimeoutError
            raise ConnectionResetError(ECONNRESET, "The client disconnected.")
        room[: len(content)] = content
        return len(content)


class HeavyProcess:
    """Gunicorn worker that handles the requests relayed by web processes."""

    def __init__(
        self, worker: Any, channel: socket.socket, app: Any, *, is_wanted: Callable[[], bool]
    ) -> None:
        """Store the worker, its end of the channel, and the application.

        `is_wanted` returns whether any web process is running.
        """
        self._worker = worker
        self._channel = channel
        self._app = app
        self._is_wanted = is_wanted
        self._stops = Event()
        self._connections = Pool(worker.worker_connections)

    def run(self) -> None:
        """Handle requests until the process is stopped and no web process is left.

        After the stop, wait for web processes no longer than the graceful timeout.
        """
        signal.signal(signal.SIGTERM, self._request_stop)
        accepting = gevent.spawn(self._accept_connection)
        while self._worker.alive:
            self._worker.notify()
            self._worker.count_dropped_lines()
            self._stops.wait(_CHECK_INTERVAL_SECONDS)
        end = monotonic() + self._worker.cfg.graceful_timeout
        while self._is_wanted() and monotonic() < end:
            self._worker.notify()
            gevent.sleep(_STOPPING_CHECK_INTERVAL_SECONDS)
        accepting.kill()

    def _request_stop(self, number: int, frame: Any) -> None:
        self._worker.handle_exit(number, frame)
        self._stops.set()

    def _accept_connection(self) -> None:
        is_open = True
        while is_open:
            self._connections.wait_available()
            received, found, *_ = socket.recv_fds(self._channel, 1, 1)
            is_open = bool(received)  # open until all processes that could send are gone
            for descriptor in found:
                self._connections.spawn(self._serve_connection, socket.socket(fileno=descriptor))

    def _serve_connection(self, connection: socket.socket) -> None:
        messages = _MessageConnection(connection)
        try:
            self._answer_request(messages)
        except (ConnectionResetError, BrokenPipeError):
            pass  # the client or its web process is gone
        except Exception:
            self._worker.log.exception(
                "Relayed request failed because of an unexpected error.",
                extra={"event": "server.heavy_request_failed"},
            )
        finally:
            messages.close_connection()

    def _answer_request(self, messages: _MessageConnection) -> None:
        told, until = orjson.loads(messages.receive_message()[1])
        environ = {
            **told,
            "wsgi.version": (1, 0),
            "wsgi.errors": sys.stderr,
            "wsgi.input": BufferedReader(_RelayedBody(messages), _CHUNK_BYTES),
        }

        def start_response(status: str, headers: Any, _error: Any = None) -> None:
            messages.send_message(_HEAD, orjson.dumps([status, headers]))

        left = max(0.0, until - monotonic())
        pieces = call_with_timeout(self._app.handle_relayed_request, left, environ, start_response)
        try:
            for piece in pieces:
                if piece:
                    messages.send_message(_CHUNK, piece)
            messages.send_message(_END)
        finally:
            if hasattr(pieces, "close"):
                pieces.close()
