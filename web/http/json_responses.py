"""JSON responses of the hot paths, encoded with orjson."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from flask import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class _WholeResponse(Response):
    """A response whose body is one bytes object with a known length."""

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Send the response without Werkzeug's checks, which take longer than building it."""
        if environ["REQUEST_METHOD"] == "HEAD" or self.status_code == HTTPStatus.NO_CONTENT:
            return super().__call__(environ, start_response)
        start_response(self.status, self.headers.to_wsgi_list())
        return [self.get_data()]


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    return _WholeResponse(orjson.dumps(value), status=status, content_type="application/json")
