"""A receiver of messages: it returns configured responses and keeps the requests."""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any

import orjson
from standardwebhooks.webhooks import Webhook

_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Received:
    """A received request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        """Id of the message, which is the same for each attempt."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        """JSON of the body."""
        read = orjson.loads(self.body)
        assert isinstance(read, dict)
        return read

    @property
    def type(self) -> str:
        """Type of the event."""
        return str(self.event["type"])

    @property
    def subject(self) -> str:
        """Subject of the event."""
        return str(self.event["data"]["details"]["target_details"])

    def verified_by(self, secret: str) -> dict[str, Any]:
        """Return the JSON of the body after a library has verified the signature."""
        read = Webhook(secret).verify(self.body, dict(self.headers))
        assert isinstance(read, dict)
        return read


@dataclass
class Receiver:
    """A receiver's configuration and its received requests."""

    url: str = ""
    port: int = 0
    #: Function that returns status and headers of a response.
    answer: Callable[[Received], tuple[int, Mapping[str, str]]] = lambda _request: (204, {})
    #: Body of the responses.
    words: bytes = b""
    received: list[Received] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def contact_url(self) -> str:
        """URL of a contact that this receiver can read; title and message are JSON."""
        return f"ntfy://127.0.0.1:{self.port}/alerts"

    @property
    def subjects(self) -> list[str]:
        """Subjects of the received events."""
        return [each.subject for each in self.received]

    def note(self, request: Received) -> tuple[int, Mapping[str, str]]:
        """Choose the response, and keep requests with a successful response."""
        with self._lock:
            status, headers = self.answer(request)
            if status < 300:
                self.received.append(request)
            return status, headers

    def of(self, *types: str) -> list[Received]:
        """Return the messages of these types, in the order of their arrival."""
        with self._lock:
            return [each for each in self.received if each.type in types]

    def wait_for(self, count: int, *types: str) -> list[Received]:
        """Wait until this number of messages of these types has arrived, and return them."""
        deadline = monotonic() + _PATIENCE_SECONDS
        while len(found := self.of(*types)) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} came"
            sleep(0.02)
        return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    receiver: Receiver

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, more = self.server.receiver.note(Received(self.path, headers, body))
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        if status not in {204, 304}:
            self.send_header("Content-Length", str(len(self.server.receiver.words)))
        self.end_headers()
        if status not in {204, 304}:
            self.wfile.write(self.server.receiver.words)

    do_GET = do_POST  # noqa: N815 - the name that the base class requires

    def log_message(self, *_arguments: object) -> None:
        """Do not log."""


@contextmanager
def running_receiver(
    receiver: Receiver | None = None, *, port: int = 0, certificate: Path | None = None
) -> Iterator[Receiver]:
    """Run a receiver on a port of loopback, with TLS if there is a certificate."""
    receiver = receiver or Receiver()
    server = _Server(("127.0.0.1", port), _Handler)
    server.receiver = receiver
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    receiver.port = server.server_port
    receiver.url = f"{scheme}://127.0.0.1:{receiver.port}/events"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def running_telephone() -> AbstractContextManager[Receiver]:
    """Run a receiver on a port of loopback that accepts messages as ntfy does."""
    return running_receiver(Receiver(answer=lambda _request: (200, {})))
