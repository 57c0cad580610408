"""Marks pages that follow a change, so that an accidental second tap does nothing.

After a change, another button may be at the position of the tap. On a marked page, buttons that
change data ignore the pointer for 2.5 seconds (base.css). With scripts, links near the last tap
also ignore the pointer (page.js). The keyboard still works.
"""

from flask import Response, request, session

from web.services import get_current_time

_CHANGED_AT_KEY = "changed_at"
#: Number of seconds within which the next page counts as following a change.
_MAX_SECONDS_AFTER_CHANGE = 10
#: Header of requests from the script that updates pages (static/js/live.js).
_UPDATE_HEADER = "Gatebell-Update"


def is_page_refresh() -> bool:
    """Return whether a script requests the page in order to refresh it.

    A refresh does not consume the messages or the time of a change. They are kept for the next page
    that the user opens.
    """
    return _UPDATE_HEADER in request.headers


def is_form_result() -> bool:
    """Return whether this page is the result of a form.

    Only the first page after a change counts as its result.
    """
    if request.method == "POST":
        return True
    if _CHANGED_AT_KEY not in session or is_page_refresh():
        return False
    changed_at: int = session.pop(_CHANGED_AT_KEY)
    return int(get_current_time().timestamp()) - changed_at <= _MAX_SECONDS_AFTER_CHANGE


def store_change_time(response: Response) -> Response:
    """Store the current time in the session if a form redirects a signed-in user."""
    is_signed_in = "_user_id" in session
    if request.method == "POST" and response.status_code in {302, 303} and is_signed_in:
        session[_CHANGED_AT_KEY] = int(get_current_time().timestamp())
    return response
