"""Another service that takes requests: it answers as told, and keeps what came."""

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
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        """What tells a message from others, however often it comes."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        """The body, read as JSON."""
        read = orjson.loads(self.body)
        assert isinstance(read, dict)
        return read

    @property
    def type(self) -> str:
        """The kind of the event."""
        return str(self.event["type"])

    @property
    def subject(self) -> str:
        """What the event is about."""
        return str(self.event["data"]["details"]["target_details"])

    def verified_by(self, secret: str) -> dict[str, Any]:
        """Read the body as a receiver does that verifies the signature by a library."""
        read = Webhook(secret).verify(self.body, dict(self.headers))
        assert isinstance(read, dict)
        return read


@dataclass
class Receiver:
    """What a receiver does and has got."""

    url: str = ""
    port: int = 0
    #: Status and headers of the answer to a request.
    answer: Callable[[Received], tuple[int, Mapping[str, str]]] = lambda _request: (204, {})
    #: The body of each answer that may have one.
    words: bytes = b""
    received: list[Received] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def contact_url(self) -> str:
        """The URL of a contact that is read here; title and message are JSON."""
        return f"ntfy://127.0.0.1:{self.port}/alerts"

    @property
    def subjects(self) -> list[str]:
        """What the received events are about."""
        return [each.subject for each in self.received]

    def note(self, request: Received) -> tuple[int, Mapping[str, str]]:
        """Decide on the answer, and keep what is answered by a success."""
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
        """Wait until so many messages of these types have come, and return them."""
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
        """Say nothing about clients that have gone."""


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
        if status != 204:
            self.send_header("Content-Length", str(len(self.server.receiver.words)))
        self.end_headers()
        if status != 204:
            self.wfile.write(self.server.receiver.words)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


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
    """Run a receiver on a port of loopback that takes messages as ntfy does."""
    return running_receiver(Receiver(answer=lambda _request: (200, {})))
