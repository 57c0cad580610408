"""Simulated phones and a chat bot that print received ntfy messages and webhooks."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class _MessageServer(ThreadingHTTPServer):
    daemon_threads = True
    #: True if received messages are printed in the terminal.
    is_loud = False


class _MessageHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _MessageServer

    def do_POST(self) -> None:
        """Receive a message."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.is_loud:
            self._send_body(body)
        answer = b"{}"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _send_body(self, body: bytes) -> None:
        try:
            told = json.loads(body)
        except ValueError:
            told = {}
        if "topic" in told:
            sys.stdout.write(f"  page for {told['topic']}: {told.get('title', '')}\n")
        elif "type" in told:
            sys.stdout.write(f"  webhook: {told['type']}\n")
        sys.stdout.flush()

    def log_message(self, *_: object) -> None:
        """Suppress the request log."""


@contextmanager
def receive_messages(*, port: int, is_loud: bool) -> Iterator[int]:
    """Run the server on a loopback port (0 for any free port), and yield the port."""
    with _MessageServer(("127.0.0.1", port), _MessageHandler) as server:
        server.is_loud = is_loud
        thread = Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
