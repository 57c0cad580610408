"""JSON responses from values encoded with orjson or from JSON written by schemas."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from flask import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


_BODILESS_STATUSES = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class _SingleChunkResponse(Response):
    """Response with a body that is one bytes object."""

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Send the response without Werkzeug's checks.

        The checks take longer than building the response.
        """
        if environ["REQUEST_METHOD"] == "HEAD" or self.status_code in _BODILESS_STATUSES:
            return super().__call__(environ, start_response)
        start_response(self.status, self.headers.to_wsgi_list())
        return [self.get_data()]


def build_json_response(value: Any, status: int = 200) -> Response:
    """Return a response with a value as JSON."""
    return _SingleChunkResponse(orjson.dumps(value), status=status, content_type="application/json")


def build_serialized_response(content: bytes, status: int = 200) -> Response:
    """Return a response with content that is already JSON."""
    return _SingleChunkResponse(content, status=status, content_type="application/json")
