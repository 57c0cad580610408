"""The body of a Git request, decompressed piece by piece."""

import zlib
from collections.abc import Iterator
from typing import Any

from web.server.request_body import DeadlineBody

_PIECE = 65_536
#: Bytes of one decompressed piece.
_MOST_AT_ONCE = 1024 * 1024
_GZIP = frozenset({"gzip", "x-gzip"})


class BadRequestBodyError(Exception):
    """The body is not what its headers say, or larger than allowed."""


def pieces_of(environ: dict[str, Any], *, seconds: float, limit: int) -> Iterator[bytes]:
    """Return the pieces of a body, which may be read after the view has returned.

    `seconds` is how long a piece may take to come, `limit` how many bytes there may be after
    decompression. The iterator raises BadRequestBodyError, and the errors of a lost client.
    """
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody):
        body.stream(seconds=seconds)
    encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    raw = _raw(body)
    return _limited(_gunzipped(raw) if encoding in _GZIP else raw, limit)


def leave_body(environ: dict[str, Any], *, has_ended: bool) -> None:
    """Close the connection after the response if the rest of the body was not read."""
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody) and not has_ended:
        body.end_connection()


def _raw(body: Any) -> Iterator[bytes]:
    while piece := body.read(_PIECE):
        yield piece


def _gunzipped(raw: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for piece in raw:
            rest = piece
            while rest:
                yield unpacker.decompress(rest, _MOST_AT_ONCE)
                rest = unpacker.unconsumed_tail
    except zlib.error as error:
        raise BadRequestBodyError("The body is not gzip.") from error
    if not unpacker.eof:
        raise BadRequestBodyError("The gzip body ended before its time.")


def _limited(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > limit:
            raise BadRequestBodyError("The body is too large.")
        yield piece
