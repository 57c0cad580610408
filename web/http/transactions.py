"""Transactions: a returned response commits, a raised error rolls back (`web/http/errors.py`).

So a refusal that is returned can still store something (a failed attempt, a revoked token family),
while a raised error stores nothing.
"""

from flask import Flask, Response, request

from web.database.engine import begin_mode
from web.extensions import db

_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: GET requests that may write: an application that was approved before gets its code at once, and
#: one with an ID token may sign its user out.
_WRITING_ENDPOINTS = frozenset({"authorize.consent", "logout.ask", "api_v4.users.export"})
#: POST requests that only write through the kept connections; a lock of the session would block
#: them.
_READING_ENDPOINTS = frozenset(
    {"test_alerts.send", "deliveries.send_again", "integration_settings.preview_mapping"}
)


def commit_returned_responses(app: Flask) -> None:
    """Install the hooks that commit."""
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
    # The hot paths never open a session.
    if db.session.registry.has():
        db.session.commit()
    return response


def roll_back() -> None:
    """Roll back the transaction of the request."""
    if db.session.registry.has():
        db.session.rollback()
