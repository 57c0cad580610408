"""Headers of lists: pages and their neighbours (RFC 8288), and parameters that were ignored."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from flask import Response, after_this_request, request

from web.access.bearer_token import QUERY_TOKENS
from web.http.routes import encoded_path
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
    return f'<{settings().base_url}{encoded_path(request.path)}?{query}>; rel="{relation}"'


IGNORED_PARAMETERS = "Gatebell-Ignored-Parameters"
#: More names, and longer ones, are cut.
_MOST = 20
_LONGEST = 50


def name_ignored(names: Sequence[str]) -> None:
    """Let the response to this request name parameters, percent-encoded."""
    shown = ", ".join(quote(name[:_LONGEST], safe="[]") for name in names[:_MOST])

    @after_this_request
    def _say(response: Response) -> Response:
        response.headers[IGNORED_PARAMETERS] = shown
        return response
