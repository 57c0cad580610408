"""Marks pages that follow a change, so that an accidental second tap does nothing.

After a change, another button may be at the position of the tap. On a marked page, the style sheet
(base.css) ignores the pointer on buttons that change data for 2.5 seconds, and with scripts
(page.js) on links near the last tap. The keyboard still works.
"""

from flask import Response, request, session

from web.services import get_current_time

_CHANGED_AT_KEY = "changed_at"
#: Number of seconds within which the next page counts as following a change.
_MAX_SECONDS_AFTER_CHANGE = 10
#: Header of requests from the script that updates pages (static/js/live.js).
_UPDATE_HEADER = "Gatebell-Update"


def is_update() -> bool:
    """Return whether a script requests the page in order to refresh it.

    Such a request does not consume messages or the time of a change, which are kept for the next
    page that the user opens.
    """
    return _UPDATE_HEADER in request.headers


def is_result_of_form() -> bool:
    """Return whether this page is the result of a form; each change counts for one page."""
    if request.method == "POST":
        return True
    if _CHANGED_AT_KEY not in session or is_update():
        return False
    changed_at: int = session.pop(_CHANGED_AT_KEY)
    return int(get_current_time().timestamp()) - changed_at <= _MAX_SECONDS_AFTER_CHANGE


def store_change_time(response: Response) -> Response:
    """Remember in the session that a form led to another page."""
    is_signed_in = "_user_id" in session
    if request.method == "POST" and response.status_code in {302, 303} and is_signed_in:
        session[_CHANGED_AT_KEY] = int(get_current_time().timestamp())
    return response
