"""Responses with text files, streamed with constant memory use."""

from collections.abc import Iterable, Iterator
from time import sleep

from flask import Response, stream_with_context

_MEDIA_TYPES = {
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8; header=present",
    "json": "application/json",
    "jsonl": "application/jsonl; charset=utf-8",
}
#: Maximum number of characters in a chunk, which can be written within a few milliseconds.
_CHUNK_CHARACTERS = 4_096


def build_text_file_response(content: str | Iterable[str], name: str) -> Response:
    """Return text as a download, or stream its lines.

    The extension of the name determines the media type.
    """
    body = content if isinstance(content, str) else stream_with_context(_join_into_chunks(content))
    response = Response(body, content_type=_MEDIA_TYPES[name.rpartition(".")[2]])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "private, no-store"
    return response


def _join_into_chunks(lines: Iterable[str]) -> Iterator[str]:
    """Join lines into chunks, and let other requests run after each chunk.

    If the client reads quickly, the greenlet never waits. Without a pause after each chunk, it
    would block other requests until the end of the file.
    """
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= _CHUNK_CHARACTERS:
            yield "".join(piece)
            piece, size = [], 0
            sleep(0)
    yield "".join(piece)
