"""A reverse proxy that serves Gatebell below a path of a host with other content."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

PATH = "/gate"
#: Headers that a proxy does not forward (RFC 9110 section 7.6.1).
_OF_ONE_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "server"})


@dataclass
class PathProxy:
    """Forwards requests below `/gate` of 127.0.0.1 to a port, and records other requests."""

    #: True if the proxy forwards the path unchanged. Otherwise, the proxy removes the prefix.
    keeps_path: bool
    #: Port of the service; set before the first request.
    target: int = 0
    #: Requests outside of the path, from links and redirects that lead there.
    strays: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Public URL of the service."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    def inside(self, asked: str) -> str | None:
        """Return the path that the service gets; paths of well-known documents stay the same."""
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
    """Forwards one request and its response."""

    server: _Server

    def do_GET(self) -> None:
        inside = self.server.proxy.inside(self.path)
        if inside is None:
            self.server.proxy.strays.append(f"{self.command} {self.path}")
            self.send_error(404)
            return
        behind = HTTPConnection("127.0.0.1", self.server.proxy.target, timeout=30)
        # A browser closes the connection when it leaves a page that is still loading.
        with closing(behind), suppress(BrokenPipeError, ConnectionResetError):
            self._ask(behind, inside)
            self._answer(behind.getresponse())

    do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - the library's names

    def _ask(self, behind: HTTPConnection, inside: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        behind.putrequest(self.command, inside, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _OF_ONE_HOP:
                # Like many proxies, this one does not forward the name of the requested host.
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
        """Do not log."""


@contextmanager
def running_proxy(*, keeps_path: bool) -> Iterator[PathProxy]:
    """Run a proxy on its own port."""
    proxy = PathProxy(keeps_path=keeps_path)
    server = _Server(proxy)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield proxy
    server.shutdown()
    thread.join()
    server.server_close()
