"""Offset pagination of API lists: `page` and `per_page`, `X-Total` and its kin, and links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import check_known, one_of
from web.access.bearer_token import QUERY_TOKENS
from web.api.links import LARGEST_NUMBER, link, page_size
from web.api.parameters import whole_number
from web.http.json_responses import json_response

#: Pagination parameters that API clients send.
_PAGING = ("page", "per_page", "pagination", "order_by", "sort")


@dataclass(frozen=True, kw_only=True)
class OffsetPage:
    """A page of a list; the first one has the number 1."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        """The number of items before the page."""
        return (self.number - 1) * self.size


def list_query(*known: str, only_order: str = "desc") -> MultiDict[str, str]:
    """Return the query of a list; raise QueryError for unknown parameters.

    Pagination parameters that clients send with every request are accepted; the response is always
    by offset, in the order of ids.
    """
    given = request.args
    check_known(given.lists(), (*known, *_PAGING), QUERY_TOKENS)
    one_of(given, "pagination", ("offset", "legacy", "keyset"), "offset")
    one_of(given, "order_by", ("id",), "id")
    if "sort" not in known:
        one_of(given, "sort", (only_order,), only_order)
    return given


def requested_page() -> OffsetPage:
    """Return the page that the query asks for, or raise InvalidError."""
    number = whole_number(request.args, "page", least=1, most=LARGEST_NUMBER)
    return OffsetPage(number=number or 1, size=page_size())


def offset_response(
    items: Sequence[Mapping[str, Any]], wanted: OffsetPage, *, total: int
) -> Response:
    """Return a page of a list of `total` items, with links to its neighbours."""
    response = json_response(items)
    response.headers.update(offset_headers(wanted.number, wanted.size, total=total))
    return response


def offset_headers(number: int, size: int, *, total: int) -> Mapping[str, str]:
    """Return the headers of a numbered page of a list of `total` items."""
    pages = -(-total // size)
    after = number + 1 if number < pages else None
    before = number - 1 if 1 < number <= pages + 1 else None
    neighbours = {"prev": before, "next": after, "first": 1, "last": max(pages, 1)}
    return {
        "X-Total": str(total),
        "X-Total-Pages": str(pages),
        "X-Page": str(number),
        "X-Per-Page": str(size),
        "X-Next-Page": str(after or ""),
        "X-Prev-Page": str(before or ""),
        "Link": ", ".join(
            link(relation, page=neighbour, per_page=size)
            for relation, neighbour in neighbours.items()
            if neighbour is not None
        ),
    }
