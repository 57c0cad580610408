"""Transactions of requests: a returned response commits, and a raised error rolls back.

A view that returns an error response can thus store data, such as a failed attempt or a revoked
token family. A raised error stores nothing (`web/http/errors.py`).
"""

from collections.abc import Callable
from contextlib import suppress

from flask import (
    Flask,
    Response,
    current_app,
    g,
    has_app_context,
    has_request_context,
    request,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.core.database.statements import SessionConnection
from web.extensions import db
from web.http.endpoints import find_endpoint

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def can_session_write() -> bool:
    """Return whether a transaction that begins now can write."""
    if not has_request_context() or g.get("begins_to_write"):
        return True
    endpoint = find_endpoint()
    if endpoint is None or endpoint.writes is None:
        return request.method not in _READ_METHODS
    return endpoint.writes


def allow_writes() -> None:
    """Allow later transactions of this request to write, even if its HTTP method is read-only."""
    g.begins_to_write = True


def commit_session(response: Response) -> Response:
    """Commit the transaction of the request, if any, and return the response unchanged."""
    # Frequent requests do not open a session, so there may be nothing to commit.
    if db.session.registry.has():
        db.session.commit()
    return response


def find_session_connection() -> SessionConnection | None:
    """Return the connection of this request's current transaction, or None."""
    if not has_app_context() or not db.session.registry.has():
        return None
    session = db.session()
    is_in_one = session.in_transaction() and session.is_active
    return SessionConnection(session) if is_in_one else None


def roll_back_session() -> None:
    """Roll back the transaction of the request."""
    if db.session.registry.has():
        # A lost connection has already rolled back, and the session is reset despite the error.
        with suppress(DBAPIError):
            db.session.rollback()


def defer_transaction(write: Callable[[Session], None]) -> Callable[[], None]:
    """Return a function that later calls `write` in its own transaction.

    The function raises database errors.
    """
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - the proxy's own

    def act() -> None:
        with app.app_context():
            write(db.session())
            db.session.commit()

    return act
