"""Numbered parts of the API's lists: `page` and `per_page`, and the headers that clients follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Response, request
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import check_known, one_of
from web.api.parameters import whole_number
from web.http.bearer_token import QUERY_TOKENS
from web.http.json_responses import json_response
from web.services import settings

_USUAL_SIZE = 20
_LARGEST_SIZE = 100
#: Beyond it a number is no page of anything.
_LAST_PAGE = 2**31 - 1
#: How clients of the API want to go through a list.
_PAGING = ("page", "per_page", "pagination", "order_by", "sort")
#: A link must not carry the token that the request was made with.
_NEVER_LINKED = frozenset({*QUERY_TOKENS, "page", "per_page"})


@dataclass(frozen=True, kw_only=True)
class Portion:
    """Which part of a list is wanted; the first page is 1."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        """How many items come before it."""
        return (self.number - 1) * self.size


def list_query(*known: str, only_order: str = "desc") -> MultiDict[str, str]:
    """Return the query of a list, or raise QueryError for what the list does not know.

    Clients of the API send how they want to go through a list with every request. Whatever they
    call it they get numbered pages with links, in the order of the ids.
    """
    given = request.args
    check_known(given.lists(), (*known, *_PAGING), QUERY_TOKENS)
    one_of(given, "pagination", ("offset", "legacy", "keyset"), "offset")
    one_of(given, "order_by", ("id",), "id")
    if "sort" not in known:
        one_of(given, "sort", (only_order,), only_order)
    return given


def requested_portion() -> Portion:
    """Return what the query asks for, or raise InvalidError; more than 100 items are not given."""
    number = whole_number(request.args, "page", least=1, most=_LAST_PAGE)
    return Portion(number=number or 1, size=requested_size())


def requested_size() -> int:
    """Return how many items are wanted at once, or raise InvalidError."""
    size = whole_number(request.args, "per_page", least=1, most=_LAST_PAGE)
    return min(size or _USUAL_SIZE, _LARGEST_SIZE)


def portion_response(
    items: Sequence[Mapping[str, Any]], portion: Portion, *, total: int
) -> Response:
    """Return a part of a list of `total` items, with the way to its neighbours."""
    pages = -(-total // portion.size)
    after = portion.number + 1 if portion.number < pages else None
    before = portion.number - 1 if 1 < portion.number <= pages + 1 else None
    neighbours = {"prev": before, "next": after, "first": 1, "last": max(pages, 1)}
    response = json_response(items)
    response.headers.update(
        {
            "X-Total": str(total),
            "X-Total-Pages": str(pages),
            "X-Page": str(portion.number),
            "X-Per-Page": str(portion.size),
            "X-Next-Page": str(after or ""),
            "X-Prev-Page": str(before or ""),
            "Link": ", ".join(
                f'<{_address(number, portion.size)}>; rel="{relation}"'
                for relation, number in neighbours.items()
                if number is not None
            ),
        }
    )
    return response


def _address(number: int, size: int) -> str:
    kept = [
        (name, value) for name, value in request.args.items(multi=True) if name not in _NEVER_LINKED
    ]
    query = urlencode([*kept, ("page", number), ("per_page", size)])
    return f"{settings().base_url}{request.path}?{query}"
