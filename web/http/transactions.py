"""A returned response commits; a raised error rolls back (in `web/http/errors.py`).

So a refusal that is returned may leave a trace (a failed attempt, a revoked family of tokens),
and an error leaves nothing.
"""

from flask import Flask, Response, request

from web.database.engine import begin_mode
from web.extensions import db

_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: A GET that may write: an application that was approved before gets its code at once, and one
#: that knows its user may sign them out.
_WRITING_ENDPOINTS = frozenset({"authorize.consent", "logout.ask", "api_v4.users.export"})
#: A POST that writes through the hot connection alone: a lock of the session would be in its way.
_READING_ENDPOINTS = frozenset(
    {"test_alerts.send", "deliveries.send_again", "integration_settings.preview_mapping"}
)


def commit_what_is_returned(app: Flask) -> None:
    """Watch the requests of the app."""
    app.before_request(_choose_mode)
    app.after_request(_commit)
    app.teardown_request(_forget_mode)


def _choose_mode() -> None:
    is_reading = request.endpoint in _READING_ENDPOINTS or (
        request.method in _READING_METHODS and request.endpoint not in _WRITING_ENDPOINTS
    )
    begin_mode.set("DEFERRED" if is_reading else "IMMEDIATE")


def _forget_mode(_error: BaseException | None) -> None:
    begin_mode.set("IMMEDIATE")  # else it would hold for what this thread does next


def _commit(response: Response) -> Response:
    # The hot paths never open a session, and pay nothing for it.
    if db.session.registry.has():
        db.session.commit()
    return response


def roll_back() -> None:
    """Undo what the request has written."""
    if db.session.registry.has():
        db.session.rollback()
