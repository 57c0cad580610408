"""The body of a Git request, decompressed piece by piece."""

import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from domain.repositories.errors import GitBodyError, GitBodyTooLargeError, GitEncodingError
from web.server.request_body import DeadlineBody

_PIECE = 65_536
#: Bytes of one decompressed piece.
_MOST_AT_ONCE = 1024 * 1024
_GZIP = frozenset({"gzip", "x-gzip"})
_PLAIN = frozenset({"", "identity"})


def is_compressed(environ: dict[str, Any]) -> bool:
    """Return whether a body is gzip; raise GitEncodingError for other content codings."""
    encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in _GZIP | _PLAIN:
        raise GitEncodingError("The only supported content encoding is gzip.")
    return encoding in _GZIP


def pieces_of(environ: dict[str, Any], *, seconds: float, limit: int) -> Iterator[bytes]:
    """Return the pieces of a body, which may be read after the view has returned.

    `seconds` is how long a piece may take to come, `limit` how many bytes there may be after
    decompression. The iterator raises GitBodyError, GitBodyTooLargeError, and the errors of a lost
    client.
    """
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody):
        body.stream(seconds=seconds)
    raw = _raw(body)
    return _limited(_gunzipped(raw) if is_compressed(environ) else raw, limit)


def read_ahead(pieces: Iterator[bytes], *, most: int) -> Iterator[bytes]:
    """Wait for a body, or for the first `most` bytes of it, and return all its pieces.

    Raises GitBodyError, and the errors of a body that does not come.
    """
    begun: list[bytes] = []
    try:
        for piece in pieces:
            begun.append(piece)
            if sum(map(len, begun)) >= most:
                break
    except OSError as error:
        raise GitBodyError("The body is incomplete.") from error
    return chain(begun, pieces)


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
            if unpacker.unused_data:
                raise GitBodyError("The gzip body goes on behind its end.")
    except zlib.error as error:
        raise GitBodyError("The body is not gzip, as its Content-Encoding says.") from error
    if not unpacker.eof:
        raise GitBodyError("The gzip body is incomplete.")


def _limited(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > limit:
            raise GitBodyTooLargeError(f"The body is larger than {limit} bytes.")
        yield piece
