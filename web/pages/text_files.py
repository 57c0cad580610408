"""Responses that are files of text."""

from flask import Response

_MEDIA_TYPES = {
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8; header=present",
}


def text_file(content: str, name: str) -> Response:
    """Return a text as a download; the end of its name says what it is."""
    response = Response(content, content_type=_MEDIA_TYPES[name.rpartition(".")[2]])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "private, no-store"
    return response
