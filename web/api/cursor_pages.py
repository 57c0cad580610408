"""Parts of the API's lists by key: for lists that may have a million items, and no total."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import Response, request
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import check_known, one_of
from domain.errors import QueryError
from web.http.bearer_token import QUERY_TOKENS
from web.http.json_responses import json_response
from web.services import settings

#: A link must not carry the token that the request was made with.
_NEVER_LINKED = frozenset({*QUERY_TOKENS, "cursor"})
#: How clients of the API want to go through a list.
_PAGING = ("cursor", "per_page", "page", "pagination", "order_by")


def list_query(*known: str, order_by: str) -> MultiDict[str, str]:
    """Return the query of a list, or raise QueryError for what the list does not know.

    There is no page but the first one by number: a client that counts would read it for ever.
    """
    given = request.args
    check_known(given.lists(), (*known, *_PAGING), QUERY_TOKENS)
    if given.get("page", "1") not in {"", "1"}:
        message = "page can only be 1: the link with rel=next leads to the next part of this list."
        raise QueryError(message, field="page")
    one_of(given, "pagination", ("keyset",), "keyset")
    one_of(given, "order_by", (order_by,), order_by)
    return given


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
