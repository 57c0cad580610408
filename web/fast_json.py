"""JSON answers of the hot paths: orjson, and nothing around it."""

from typing import Any

import orjson
from flask import Response


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(orjson.dumps(value), status=status, content_type="application/json")
