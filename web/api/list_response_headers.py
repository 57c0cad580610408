"""Headers of list responses: pagination (RFC 8288) and ignored parameters."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from flask import Response, after_this_request, request

from web.access.bearer_token import TOKEN_QUERY_PARAMETERS
from web.http.url_converters import encode_path
from web.services import get_settings


def build_offset_headers(
    number: int, size: int, *, total: int, keyset_from: str | None = None
) -> Mapping[str, str]:
    """Return the headers for a numbered page in a list with `total` items.

    `keyset_from` is the cursor after this page. If it is given, the links use keyset pagination,
    because numbered pages are removed from the list in a later release.
    """
    pages = -(-total // size)
    after = number + 1 if number < pages else None
    before = number - 1 if 1 < number <= pages + 1 else None
    neighbours = {"prev": before, "next": after, "first": 1, "last": max(pages, 1)}
    links = [
        _build_link(relation, page=neighbour, per_page=size)
        for relation, neighbour in neighbours.items()
        if neighbour is not None and (keyset_from is None or relation == "first")
    ]
    if keyset_from is not None:
        links.append(_build_link("next", cursor=keyset_from, pagination="keyset"))
    return {
        "X-Total": str(total),
        "X-Total-Pages": str(pages),
        "X-Page": str(number),
        "X-Per-Page": str(size),
        "X-Next-Page": str(after or ""),
        "X-Prev-Page": str(before or ""),
        "Link": ", ".join(links),
    }


def build_cursor_headers(next_cursor: str | None, **changed: str) -> Mapping[str, str]:
    """Return the header with the link to the next page, or no header on the last page.

    The link keeps the parameters of this page except the parameters in `changed`.
    """
    if next_cursor is None:
        return {}
    return {"Link": _build_link("next", cursor=next_cursor, **changed)}


def _build_link(relation: str, **changed: str | int) -> str:
    """Return a link to this list, with the parameters in `changed` replaced.

    The link omits the token in the request, because links appear in logs.
    """
    # A keyset page has no number.
    left_out = {*TOKEN_QUERY_PARAMETERS, *changed, *(("page",) if "cursor" in changed else ())}
    kept = [(name, value) for name, value in request.args.items(multi=True) if name not in left_out]
    query = urlencode([*kept, *changed.items()])
    return f'<{get_settings().base_url}{encode_path(request.path)}?{query}>; rel="{relation}"'


IGNORED_PARAMETERS_HEADER = "Gatebell-Ignored-Parameters"
#: Maximum number and length of names in the header. Additional names and characters are omitted.
_MAX_NAMES = 20
_MAX_NAME_LENGTH = 50


def add_ignored_parameters_header(names: Sequence[str]) -> None:
    """Add a response header that lists ignored parameters, percent-encoded."""
    shown = ", ".join(quote(name[:_MAX_NAME_LENGTH], safe="[]") for name in names[:_MAX_NAMES])

    @after_this_request
    def _add_header(response: Response) -> Response:
        response.headers[IGNORED_PARAMETERS_HEADER] = shown
        return response
