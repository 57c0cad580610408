"""Links between the pages of an API list (RFC 8288), and the page size that both kinds share."""

from urllib.parse import urlencode

from flask import request

from web.access.bearer_token import QUERY_TOKENS
from web.api.parameters import whole_number
from web.services import settings

#: A larger number is no page number and no page size.
LARGEST_NUMBER = 2**31 - 1
_USUAL_SIZE = 20
_LARGEST_SIZE = 100


def page_size() -> int:
    """Return `per_page`, at most 100, or raise InvalidError."""
    size = whole_number(request.args, "per_page", least=1, most=LARGEST_NUMBER)
    return min(size or _USUAL_SIZE, _LARGEST_SIZE)


def link(relation: str, **changed: str | int) -> str:
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
