"""A website of an application that redirects the browser to Gatebell and receives it back."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Thread
from urllib.parse import urlsplit

#: Page whose button opens the URL in its fragment in a popup, and which shows the result.
_OPENER = b"""<!doctype html><title>An application</title>
<button>Sign in with Gatebell</button><output></output>
<script>
document.querySelector("button").addEventListener("click", () => {
  window.popup = window.open(location.hash.slice(1), "sign_in", "width=500,height=700");
});
window.addEventListener("message", (event) => {
  document.querySelector("output").textContent = event.data;
});
</script>"""
#: Page that sends its query to its opener.
_CALLBACK = b"""<!doctype html><title>Back at the application</title><h1>Back</h1>
<script>if (window.opener) window.opener.postMessage(location.search, "*");</script>"""


class _Pages(BaseHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/broker":  # The broker redirects to another site.
            self.send_response(302)
            self.send_header("Location", f"{self.server.hands_on_to}?{parts.query}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = _OPENER if parts.path == "/" else _CALLBACK
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Do not log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hands_on_to = ""


class _ServerOnIPv6(_Server):
    address_family = socket.AF_INET6


class ClientSite:
    """A running website."""

    def __init__(self, server: _Server, host: str) -> None:
        self._server = server
        self.url = f"http://{host}:{server.server_port}"
        self.callback = f"{self.url}/callback"
        self.broker = f"{self.url}/broker"

    def hand_on_to(self, other: "ClientSite") -> None:
        """Redirect responses that reach the broker to another site."""
        self._server.hands_on_to = other.callback


@contextmanager
def running_site(address: str = "127.0.0.1") -> Iterator[ClientSite]:
    """Run a website on a port of loopback, which is a separate origin."""
    is_v6 = ip_address(address).version == 6
    with socket.socket() as namesake:
        # `localhost` is resolved to ::1 first, so no service with that name may use this port.
        namesake.bind(("127.0.0.1", 0))
        port = namesake.getsockname()[1] if is_v6 else 0
        server = (_ServerOnIPv6 if is_v6 else _Server)((address, port), _Pages)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield ClientSite(server, f"[{address}]" if is_v6 else address)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
