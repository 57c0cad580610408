"""Transactions: a returned response commits, a raised error rolls back (`web/http/errors.py`).

So a refusal that is returned can still store something (a failed attempt, a revoked token family),
while a raised error stores nothing.
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

_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def commit_returned_responses(app: Flask) -> None:
    """Install the hook that commits."""
    app.after_request(_commit)


def session_writes() -> bool:
    """Return whether a transaction that the session begins now may write."""
    if not has_request_context() or g.get("begins_to_write"):
        return True
    endpoint = find_endpoint()
    if endpoint is None or endpoint.writes is None:
        return request.method not in _READING_METHODS
    return endpoint.writes


def begin_to_write() -> None:
    """Let the next transactions of the session write, though this request usually only reads."""
    g.begins_to_write = True


def _commit(response: Response) -> Response:
    # The hot paths never open a session.
    if db.session.registry.has():
        db.session.commit()
    return response


def held_connection() -> SessionConnection | None:
    """Return the connection of the transaction that this request is in, or None."""
    if not has_app_context() or not db.session.registry.has():
        return None
    session = db.session()
    is_in_one = session.in_transaction() and session.is_active
    return SessionConnection(session) if is_in_one else None


def roll_back() -> None:
    """Roll back the transaction of the request."""
    if db.session.registry.has():
        # A lost connection has rolled back by itself, and the session forgets it all the same.
        with suppress(DBAPIError):
            db.session.rollback()


def prepared(write: Callable[[Session], None]) -> Callable[[], None]:
    """Return what writes in a transaction of its own, at any later time.

    What it returns raises the errors of the database.
    """
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - the proxy's own

    def act() -> None:
        with app.app_context():
            write(db.session())
            db.session.commit()

    return act
