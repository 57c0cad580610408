"""Responses that are files of text."""

from collections.abc import Iterator

from flask import Response, stream_with_context

_MEDIA_TYPES = {
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8; header=present",
}


def text_file(content: str | Iterator[str], name: str) -> Response:
    """Return a text as a download, or stream its lines; the end of its name says what it is."""
    body = content if isinstance(content, str) else stream_with_context(content)
    response = Response(body, content_type=_MEDIA_TYPES[name.rpartition(".")[2]])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "private, no-store"
    return response
