"""Writes what happens after the view has returned, such as at the end of a transfer of Git."""

from collections.abc import Callable

from flask import Flask, current_app
from sqlalchemy.orm import Session

from web.extensions import db


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
