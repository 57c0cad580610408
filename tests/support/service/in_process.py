"""A service without its own processes: its app runs in the process of the tests.

It is for settings that few tests need and that only concern the app, since programs take seconds to
start. No server listens at its URL: requests that `requests` sends there go to the app.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stderr
from email.message import Message
from functools import partial
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPHeaderDict, HTTPResponse
from werkzeug.test import run_wsgi_app

from tests.support.service.live import LiveGatebell
from web.logging import JsonFormatter

#: Running services by host and port.
_running: dict[str, "InProcessGatebell"] = {}


class InProcessGatebell(LiveGatebell):
    """A service that processes requests in the process of their sender."""

    def start(self) -> None:
        """Take the requests to its URL from now on."""
        self._log.touch()
        self._records = _Shared(partial(_records_in, self._log))
        self._lines = _Shared(partial(_standard_error_in, self._log))
        _running[urlsplit(self.url).netloc] = self

    def stop(self) -> int:
        """Take no more requests, and return a successful status."""
        del _running[urlsplit(self.url).netloc]
        for session in self._sessions:
            session.close()
        self.close()
        return 0

    def is_running(self) -> bool:
        """Return whether it takes requests."""
        return self in _running.values()

    def keep_log(self) -> AbstractContextManager[None]:
        """Keep log records during the block, for jobs of the worker in threads of this process."""
        return self._records.used()

    def answer(self, request: requests.PreparedRequest) -> HTTPResponse:
        """Process a request as a web server does (PEP 3333), and keep its log records."""
        with self.keep_log(), self._lines.used():
            body, status, headers = run_wsgi_app(self.app(), _environ_of(request), buffered=True)
        number, _, reason = status.partition(" ")
        return HTTPResponse(
            body=BytesIO(b"".join(body)),
            headers=HTTPHeaderDict(list(headers)),
            status=int(number),
            reason=reason,
            preload_content=False,
            request_method=request.method,
            original_response=_Original(headers),  # type: ignore[arg-type]
        )


def take_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let services of this process receive requests of `requests` while the patch is active."""
    send = HTTPAdapter.send

    def sent(
        self: HTTPAdapter, request: requests.PreparedRequest, *args: Any, **options: Any
    ) -> requests.Response:
        service = _running.get(urlsplit(request.url or "").netloc)
        if service is None:
            return send(self, request, *args, **options)
        return self.build_response(request, service.answer(request))

    monkeypatch.setattr(HTTPAdapter, "send", sent)


class _Original:
    """Response object from which `requests` reads cookies."""

    def __init__(self, headers: Iterable[Any]) -> None:
        self.msg = Message()
        for name, value in headers:
            self.msg[name] = value

    def isclosed(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing, since the body is complete."""


def _environ_of(request: requests.PreparedRequest) -> dict[str, Any]:
    place = urlsplit(request.url or "")
    body = _bytes_of(request.body)
    environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(place.path or "/").decode("latin-1"),
        "QUERY_STRING": place.query,
        "RAW_URI": request.path_url,
        "SERVER_NAME": place.hostname,
        "SERVER_PORT": str(place.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": place.netloc,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": place.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": BytesIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    given: dict[str, Any] = dict(request.headers)
    for name, value in given.items():
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        key = name.upper().replace("-", "_")
        environ[key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"] = text
    return environ


def _bytes_of(body: Any) -> bytes:
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else b"".join(body or ())


class _Shared:
    """A context that several threads share: the first one enters it, the last one exits it."""

    def __init__(self, begin: Callable[[], AbstractContextManager[object]]) -> None:
        self._begin = begin
        self._lock = Lock()
        self._count = 0
        self._end = ExitStack()

    @contextmanager
    def used(self) -> Iterator[None]:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._end.enter_context(self._begin())
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if not self._count:
                    self._end.close()


@contextmanager
def _records_in(path: Path) -> Iterator[None]:
    """Write the log records of this process to a file."""
    root = logging.getLogger()
    level = root.level
    with path.open("a", encoding="utf-8") as log:
        handler = logging.StreamHandler(log)
        handler.setFormatter(JsonFormatter())
        root.setLevel(logging.INFO)
        root.addHandler(handler)
        try:
            yield
        finally:
            root.removeHandler(handler)
            root.setLevel(level)


@contextmanager
def _standard_error_in(path: Path) -> Iterator[None]:
    """Write standard error to a file, because lines about requests are not log records."""
    with path.open("a", encoding="utf-8") as log, redirect_stderr(log):
        yield
