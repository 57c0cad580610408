"""A reverse proxy that gives the service a path of a host that has other things as well."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

PATH = "/gate"
#: What a proxy does not hand on (RFC 9110 section 7.6.1).
_OF_ONE_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "server"})


@dataclass
class PathProxy:
    """What is below `/gate` of 127.0.0.1 goes to a port, and what clients ask of it."""

    #: Whether the service is told the path, or finds it gone.
    keeps_path: bool
    #: Where the service listens; set before the first request.
    target: int = 0
    #: What was asked for elsewhere on the host: links and redirects that lead out of the path.
    strays: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """The address that people and clients know."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    def inside(self, asked: str) -> str | None:
        """Return what the service is asked for; well-known documents are handed on as they are."""
        if asked.startswith("/.well-known/"):
            return asked
        if asked.partition("?")[0] != PATH and not asked.startswith(f"{PATH}/"):
            return None
        return asked if self.keeps_path else asked.removeprefix(PATH) or "/"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: PathProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy
        proxy.port = self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    """Hands on one request and its answer."""

    server: _Server

    def do_GET(self) -> None:
        inside = self.server.proxy.inside(self.path)
        if inside is None:
            self.server.proxy.strays.append(f"{self.command} {self.path}")
            self.send_error(404)
            return
        behind = HTTPConnection("127.0.0.1", self.server.proxy.target, timeout=30)
        # A browser that leaves a page hangs up on what it had asked for.
        with closing(behind), suppress(BrokenPipeError, ConnectionResetError):
            self._ask(behind, inside)
            self._answer(behind.getresponse())

    do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - the library's names

    def _ask(self, behind: HTTPConnection, inside: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        behind.putrequest(self.command, inside, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _OF_ONE_HOP:
                # As many proxies do it: the service is not told which host was asked for.
                behind.putheader(name, "inside.example" if name.lower() == "host" else value)
        behind.endheaders(body)

    def _answer(self, answer: HTTPResponse) -> None:
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_ONE_HOP | {"content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def running_proxy(*, keeps_path: bool) -> Iterator[PathProxy]:
    """Run a proxy on a port of its own."""
    proxy = PathProxy(keeps_path=keeps_path)
    server = _Server(proxy)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield proxy
    server.shutdown()
    thread.join()
    server.server_close()
