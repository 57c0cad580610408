"""Parts of the API's lists by key: for lists that may have a million items, and no total."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from web.fast_json import json_response
from web.services import settings

#: A link must not carry the token that the request was made with.
_NEVER_LINKED = frozenset({"access_token", "private_token", "cursor"})


def cursor_response(items: Sequence[Mapping[str, Any]], next_cursor: str | None) -> Response:
    """Return a part of a list with the way to the next one (RFC 8288)."""
    response = json_response(items)
    if next_cursor is not None:
        kept = [
            (name, value)
            for name, value in request.args.items(multi=True)
            if name not in _NEVER_LINKED
        ]
        query = urlencode([*kept, ("cursor", next_cursor)])
        address = f"{settings().base_url}{request.path}?{query}"
        response.headers["Link"] = f'<{address}>; rel="next"'
    return response
