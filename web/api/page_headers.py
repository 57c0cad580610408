"""Headers of a page of a list: its number and its neighbours, or a link (RFC 8288) to the next."""

from collections.abc import Mapping
from urllib.parse import urlencode

from flask import request

from web.access.bearer_token import QUERY_TOKENS
from web.services import settings


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
            _link(relation, page=neighbour, per_page=size)
            for relation, neighbour in neighbours.items()
            if neighbour is not None
        ),
    }


def cursor_headers(next_cursor: str | None, **changed: str) -> Mapping[str, str]:
    """Return the headers of a page with a link to the next one, if there is one.

    The link has the parameters of this page, but for those that are `changed`.
    """
    if next_cursor is None:
        return {}
    return {"Link": _link("next", cursor=next_cursor, **changed)}


def _link(relation: str, **changed: str | int) -> str:
    """Return a link to this list with other parameters; all else in the query stays.

    The token that the request was made with is left out: links end up in logs.
    """
    kept = [
        (name, value)
        for name, value in request.args.items(multi=True)
        if name not in QUERY_TOKENS and name not in changed
    ]
    query = urlencode([*kept, *changed.items()])
    return f'<{settings().base_url}{request.path}?{query}>; rel="{relation}"'
