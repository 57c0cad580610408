"""What a web server may have to serve, and the service has no view for."""

import json
from collections.abc import Iterable, Iterator
from os import environ as process_environment
from pathlib import Path
from typing import Any

#: Longer than what is sent with its head, and than what a socket takes at once.
LONG = bytes(range(256)) * 4096
#: Where the same is kept as a file.
FILE_VARIABLE = "FILE_OF_PLAIN_APP"


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer as the path says (PEP 3333)."""
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
    """Read the request, and answer with what it was."""
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
    """Answer with all requests that /echo has had since the last time."""
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
