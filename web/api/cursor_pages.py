"""Keyset pagination of API lists: for lists that may have a million items, without a total."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Response, request
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import check_known, one_of
from domain.errors import QueryError
from web.access.bearer_token import QUERY_TOKENS
from web.api.links import link
from web.http.json_responses import json_response

#: Pagination parameters that API clients send.
_PAGING = ("cursor", "per_page", "page", "pagination", "order_by")


def list_query(*known: str, order_by: str) -> MultiDict[str, str]:
    """Return the query of a list; raise QueryError for unknown parameters.

    Page numbers above 1 are refused: a client that counts pages would read the first one for ever.
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
    """Return a page of a list with a link to the next one."""
    response = json_response(items)
    response.headers.update(cursor_headers(next_cursor))
    return response


def cursor_headers(next_cursor: str | None) -> Mapping[str, str]:
    """Return the headers of a page with a next one, if there is one."""
    return {} if next_cursor is None else {"Link": link("next", cursor=next_cursor)}
