"""Pages that refresh themselves (ADR 80).

The script of such a page (static/js/live.js) requests the page's mark at regular intervals. When
the mark has changed, the script requests the page, and replaces the parts that differ.
"""

from collections.abc import Callable

from flask import g
from flask.typing import ResponseReturnValue

from domain.paging.change_marks.marks import PageMark
from web.http.endpoints import is_mark_request
from web.http.json_responses import build_json_response
from web.pages.templating import format_capped_count


def render_live_page(
    mark: PageMark, render: Callable[[], ResponseReturnValue]
) -> ResponseReturnValue:
    """Return the page, or only its mark if the page's script requests the mark.

    Compute the mark before you call this function: the page may change while it is rendered.
    """
    if not is_mark_request():
        g.page_mark = mark
        return render()
    count = mark.open_alerts
    response = build_json_response(
        {"mark": mark.value, "open": None if count is None else format_capped_count(count)}
    )
    response.headers["Cache-Control"] = "no-store"
    return response
