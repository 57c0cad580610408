"""Collects the SQL statements that a request sends, where the driver takes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from flask import Flask
from sqlalchemy import Engine, event

from web.extensions import db

#: A text and its values: by name as psycopg has them, or by number as Postgres has them.
SentStatement = tuple[str, Any]


@contextmanager
def statements_of(app: Flask) -> Iterator[list[str]]:
    """Collect the texts of all statements, of sessions and of the hot paths."""
    found: list[str] = []
    with app.app_context():
        engine = db.engine
    if engine.dialect.name == "postgresql":
        with postgres_statements() as asked:
            yield found
        found += [text for text, _ in asked]
        return

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found.append(statement)

    # The hot paths have an engine of their own.
    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


@contextmanager
def postgres_statements() -> Iterator[list[SentStatement]]:
    """Collect the statements that are sent to Postgres, with their values."""
    found: list[SentStatement] = []
    execute, execute_many = psycopg.Cursor.execute, psycopg.Cursor.executemany

    def note(cursor: Any, query: Any, values: Any = None, **more: Any) -> Any:
        found.append((str(query), values))
        return execute(cursor, query, values, **more)

    def note_many(cursor: Any, query: Any, rows: Any, **more: Any) -> Any:
        found.append((str(query), rows))
        return execute_many(cursor, query, rows, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", note)
        patch.setattr(psycopg.Cursor, "executemany", note_many)
        yield found


@contextmanager
def round_trips() -> Iterator[list[None]]:
    """Collect one entry for each time that this process waits for Postgres."""
    found: list[None] = []
    wait = psycopg.Connection.wait

    def note(connection: Any, *rest: Any, **more: Any) -> Any:
        found.append(None)
        return wait(connection, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "wait", note)
        yield found
