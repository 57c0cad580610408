"""Transactions: a returned response commits, a raised error rolls back (`web/http/errors.py`).

So a refusal that is returned can still store something (a failed attempt, a revoked token family),
while a raised error stores nothing.
"""

from collections.abc import Callable

from flask import Flask, Response, current_app, request
from sqlalchemy.orm import Session

from web.database.engine import begin_mode
from web.extensions import db
from web.http.endpoints import find_endpoint

_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def commit_returned_responses(app: Flask) -> None:
    """Install the hooks that commit."""
    app.before_request(_choose_mode)
    app.after_request(_commit)
    app.teardown_request(_forget_mode)


def _choose_mode() -> None:
    endpoint = find_endpoint()
    writes = endpoint.writes if endpoint else None
    if writes is None:
        writes = request.method not in _READING_METHODS
    begin_mode.set("IMMEDIATE" if writes else "DEFERRED")


def _forget_mode(_error: BaseException | None) -> None:
    begin_mode.set("IMMEDIATE")  # the default of transactions outside of requests


def _commit(response: Response) -> Response:
    # The hot paths never open a session.
    if db.session.registry.has():
        db.session.commit()
    return response


def roll_back() -> None:
    """Roll back the transaction of the request."""
    if db.session.registry.has():
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
