"""What a request asks of the database, read where the driver takes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from flask import Flask
from sqlalchemy import event

from web.extensions import db


@contextmanager
def statements_of(app: Flask) -> Iterator[list[str]]:
    """Collect the statements, whoever sends them."""
    found: list[str] = []
    with app.app_context():
        engine = db.engine
    if engine.dialect.name == "postgresql":
        with pytest.MonkeyPatch.context() as patch:
            _watch_psycopg(patch, found)
            yield found
        return

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)


def _watch_psycopg(patch: pytest.MonkeyPatch, found: list[str]) -> None:
    execute, execute_many = psycopg.Cursor.execute, psycopg.Cursor.executemany

    def note(cursor: Any, query: Any, *rest: Any, **more: Any) -> Any:
        found.append(str(query))
        return execute(cursor, query, *rest, **more)

    def note_many(cursor: Any, query: Any, *rest: Any, **more: Any) -> Any:
        found.append(str(query))
        return execute_many(cursor, query, *rest, **more)

    patch.setattr(psycopg.Cursor, "execute", note)
    patch.setattr(psycopg.Cursor, "executemany", note_many)


@contextmanager
def round_trips() -> Iterator[list[None]]:
    """Collect one entry each time this process waits for Postgres."""
    found: list[None] = []
    wait = psycopg.Connection.wait

    def note(connection: Any, *rest: Any, **more: Any) -> Any:
        found.append(None)
        return wait(connection, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "wait", note)
        yield found
