"""A WSGI app with responses that web servers have to support, but Gatebell does not use."""

import json
from collections.abc import Iterable, Iterator
from os import environ as process_environment
from pathlib import Path
from typing import Any

#: Body that is longer than the buffer with the headers and the buffer of a socket.
LONG = bytes(range(256)) * 4096
#: Environment variable with the path of a file that has the same content.
FILE_VARIABLE = "FILE_OF_PLAIN_APP"


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return the response for the path (PEP 3333)."""
    return _ANSWERS.get(environ["PATH_INFO"], _echo)(environ, start_response)


def _short(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"sh", b"", b"ort"]


def _long(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", str(len(LONG)))])
    return [LONG[:1], LONG[1:]]


def _file(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", str(len(LONG)))])
    file = Path(process_environment[FILE_VARIABLE]).open("rb")  # noqa: SIM115 - the server closes it
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](file)
    return wrapped


def _nothing(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("204 No Content", [])
    return []


def _breaks_later(_environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [])
    yield b"so far"
    raise LookupError


def _echo(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Read the request, and return it as JSON."""
    body = environ["wsgi.input"].read()
    seen = {
        "method": environ["REQUEST_METHOD"],
        "target": environ["RAW_URI"],
        "body": body.decode("latin-1"),
        "is_whole": len(body) == int(environ.get("CONTENT_LENGTH", len(body))),
    }
    _seen.append(seen)
    return _json(seen, start_response)


def _tell(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return all requests to /echo since the last call."""
    told = _seen.copy()
    _seen.clear()
    return _json(told, start_response)


def _json(told: Any, start_response: Any) -> Iterable[bytes]:
    written = json.dumps(told).encode()
    start_response("200 OK", [("Content-Length", str(len(written)))])
    return [written]


_seen: list[dict[str, Any]] = []
_ANSWERS = {
    "/echo": _echo,
    "/tell": _tell,
    "/short": _short,
    "/long": _long,
    "/file": _file,
    "/nothing": _nothing,
    "/breaks-later": _breaks_later,
}
