"""Reads and decompresses untrusted request bodies up to a size limit."""

import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from gzip import BadGzipFile, GzipFile
from io import BytesIO

from flask import request
from werkzeug.exceptions import ClientDisconnected

from domain.alerts.parsing.incoming_alert import UnreadableBodyError
from domain.alerts.receiving.receivers import BodyTooLargeError, NotJsonError
from domain.core import thread_pools
from domain.core.errors import DomainError

#: Magic bytes of gzip (RFC 1952 section 2.3.1).
_GZIP_MAGIC = b"\x1f\x8b"
#: Chunk size in bytes for reading bodies when only the beginning is stored.
_CHUNK_BYTES = 65_536
_INCOMPLETE_BODY_MESSAGE = "The body is incomplete."


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedBody:
    """A body within the size limit, or its raw bytes and the error if decompression failed."""

    content: bytes
    flaw: DomainError | None = None

    def raise_for_error(self) -> None:
        """Raise the error of the body, if any.

        Call this method after the sender has been authenticated.
        """
        if self.flaw is not None:
            raise self.flaw


def _build_too_large_error(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"The body must be smaller than {limit} bytes.")


def check_declared_length(limit: int) -> None:
    """Raise BodyTooLargeError if Content-Length is not below the limit."""
    if (request.content_length or 0) >= limit:
        raise _build_too_large_error(limit)


def read_limited_body(limit: int) -> ReceivedBody:
    """Return the decompressed body if it is smaller than a limit.

    A body is not read if its Content-Length is too large. Otherwise, reading stops at the limit.
    Raise BodyTooLargeError in both cases, and UnreadableBodyError for an incomplete body.
    Decompression errors are returned with the body.
    """
    check_declared_length(limit)
    # Werkzeug's limit for forms may be lower than this limit.
    request.max_content_length = limit + 1
    try:
        body = request.stream.read(limit)
    except (ClientDisconnected, OSError) as error:
        raise UnreadableBodyError(_INCOMPLETE_BODY_MESSAGE) from error
    if len(body) >= limit:
        raise _build_too_large_error(limit)
    if len(body) < (request.content_length or 0):
        raise UnreadableBodyError(_INCOMPLETE_BODY_MESSAGE)
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        return ReceivedBody(content=body)
    try:
        return ReceivedBody(
            content=thread_pools.parsing_pool.run_task(_decompress_body, body, encoding, limit)
        )
    except (NotJsonError, UnreadableBodyError) as error:
        return ReceivedBody(content=body, flaw=error)


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyPrefix:
    """The beginning of a body, and the number of bytes that were read."""

    content: bytes
    size: int
    #: `True` if the body is longer than the part that was read. The connection must then be closed.
    has_more: bool


def read_body_prefix(kept: int, maximum: int) -> BodyPrefix:
    """Read up to `maximum` bytes of a body, and return the first `kept` bytes.

    If the body ends early, return the received part. Bodies are not decompressed.
    """
    # Werkzeug would reject a body with a larger Content-Length.
    request.max_content_length = None
    content, size, piece = b"", 0, b""
    with suppress(ClientDisconnected, OSError):
        while size < maximum and (piece := request.stream.read(min(_CHUNK_BYTES, maximum - size))):
            content += piece[: kept - len(content)]
            size += len(piece)
    is_whole = size == request.content_length or (size < maximum and not piece)
    return BodyPrefix(content=content, size=size, has_more=not is_whole)


def _decompress_body(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise NotJsonError("The only supported content encodings are gzip and deflate.")
    unpack = _decompress_gzip if body.startswith(_GZIP_MAGIC) else _decompress_zlib
    unpacked = unpack(body, limit, encoding)
    if len(unpacked) >= limit:
        raise _build_too_large_error(limit)
    return unpacked


def _decompress_gzip(body: bytes, maximum: int, encoding: str) -> bytes:
    """Decompress all gzip members (RFC 1952 section 2.2), as `zcat` does."""
    try:
        # Unlike a loop with zlib, GzipFile does not copy the remaining body for each member.
        return GzipFile(fileobj=BytesIO(body)).read(maximum)
    except EOFError as error:
        raise UnreadableBodyError(f"The {encoding} body is incomplete.") from error
    except (BadGzipFile, zlib.error) as error:
        message = f"The body is not {encoding}, or is followed by other data."
        raise UnreadableBodyError(message) from error


def _decompress_zlib(body: bytes, maximum: int, encoding: str) -> bytes:
    """Decompress the zlib format (RFC 9110 section 8.4.1.2)."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(body, maximum)
    except zlib.error as error:
        raise UnreadableBodyError(f"The body is not {encoding}.") from error
    if len(unpacked) < maximum and not unpacker.eof:
        raise UnreadableBodyError(f"The {encoding} body is incomplete.")
    if unpacker.unused_data:
        raise UnreadableBodyError(f"The {encoding} body is followed by other data.")
    return unpacked


def check_media_type(*expected: str) -> None:
    """Check that the body has an expected media type, by default JSON.

    The structured suffix of the first type, such as +json, is also accepted (RFC 6839 section 3.1).
    Raise NotJsonError for any other media type.
    """
    wanted = expected or ("application/json",)
    # Some senders and proxies join two headers with a comma.
    given = [
        part.partition(";")[0].strip().lower() for part in (request.content_type or "").split(",")
    ]
    if not all(_is_expected_type(each, wanted) for each in given):
        raise NotJsonError(f"The Content-Type must be {' or '.join(wanted)}.")


def _is_expected_type(given: str, wanted: Sequence[str]) -> bool:
    if given == "text/json" and "application/json" in wanted:  # a name that predates RFC 4627
        return True
    suffix = "+" + wanted[0].partition("/")[2]
    return given in wanted or (given.startswith("application/") and given.endswith(suffix))
