"""Pages that refresh themselves (ADR 80).

The page's script (static/js/live.js) regularly requests a digest of the data that the page shows.
If the digest has changed, the script requests the page, and replaces the parts that differ.
"""

from collections.abc import Callable

from flask import g
from flask.typing import ResponseReturnValue

from domain.paging.page_digests.digests import PageDigest
from web.http.endpoints import is_page_digest_request
from web.http.json_responses import build_json_response
from web.pages.templating import format_capped_count


def render_live_page(
    mark: PageDigest, render: Callable[[], ResponseReturnValue]
) -> ResponseReturnValue:
    """Return the page, or only its digest if the page's script requests the digest.

    Compute the digest before you call this function, because the data may change while the page is
    rendered.
    """
    if not is_page_digest_request():
        g.page_mark = mark
        return render()
    count = mark.open_alerts
    response = build_json_response(
        {"mark": mark.value, "open": None if count is None else format_capped_count(count)}
    )
    response.headers["Cache-Control"] = "no-store"
    return response
