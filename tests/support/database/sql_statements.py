"""Collects the SQL statements of a request at the driver."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from flask import Flask
from sqlalchemy import Engine, event

from web.database.prepared_statements import PreparedStatementExecutor
from web.extensions import db

#: Text and values of a statement: by name as in psycopg, or by number as in Postgres.
SentStatement = tuple[str, Any]


@contextmanager
def collect_statements(app: Flask) -> Iterator[list[str]]:
    """Collect the texts of all statements, including statements of the hot paths."""
    found: list[str] = []
    with app.app_context():
        engine = db.engine
    if engine.dialect.name == "postgresql":
        with collect_postgres_statements() as asked:
            yield found
        found += [text for text, _ in asked]
        return

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found.append(statement)

    # The hot paths have their own engine.
    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


@contextmanager
def collect_postgres_statements() -> Iterator[list[SentStatement]]:
    """Collect the statements that are sent to Postgres, with their values."""
    found: list[SentStatement] = []
    execute, execute_many = psycopg.Cursor.execute, psycopg.Cursor.executemany
    run = PreparedStatementExecutor.run_statement

    def note(cursor: Any, query: Any, values: Any = None, **more: Any) -> Any:
        found.append((str(query), values))
        return execute(cursor, query, values, **more)

    def note_many(cursor: Any, query: Any, rows: Any, **more: Any) -> Any:
        found.append((str(query), rows))
        return execute_many(cursor, query, rows, **more)

    def note_prepared(
        prepared: PreparedStatementExecutor, sql: bytes, values: Any, *more: Any
    ) -> Any:
        found.append((sql.decode(), values))
        return run(prepared, sql, values, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreparedStatementExecutor, "run_statement", note_prepared)
        patch.setattr(psycopg.Cursor, "execute", note)
        patch.setattr(psycopg.Cursor, "executemany", note_many)
        yield found


@contextmanager
def collect_plans(*words: str) -> Iterator[list[str]]:
    """Collect the query plans of all statements that contain one of the words."""
    found: list[str] = []
    explain = {"postgresql": "EXPLAIN", "sqlite": "EXPLAIN QUERY PLAN"}[db.engine.dialect.name]

    def is_asked(statement: str) -> bool:
        has_word = any(word in statement for word in words)
        return has_word and statement.lstrip().startswith(("SELECT", "WITH"))

    if explain == "EXPLAIN":
        with collect_postgres_statements() as asked:
            yield found
        connection: Any = db.session.connection().connection.driver_connection
        for query, values in asked:
            if is_asked(query):
                found.append(str(connection.execute(f"{explain} {query}", values).fetchall()))
        return

    def note(_connection: Any, cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        if is_asked(statement):
            steps = cursor.connection.execute(f"{explain} {statement}", values)
            found.append("\n".join(step[3] for step in steps))

    event.listen(db.engine, "before_cursor_execute", note)
    yield found
    event.remove(db.engine, "before_cursor_execute", note)


def assert_nothing_is_read_whole(found: list[str], table: str, *about: object) -> None:
    """Assert that there are plans, and that no plan scans a whole table."""
    assert found, about
    for plan in found:
        assert f"Seq Scan on {table}" not in plan, (about, plan)
        scans = [step for step in plan.split("\n") if step.startswith(f"SCAN {table}")]
        assert all("USING" in step for step in scans), (about, plan)


#: Sources of the numbers from 1 to n, for statements that fill tables.
_NUMBERS = {
    "postgresql": "generate_series(1, {0}) AS n",
    "sqlite": "(WITH RECURSIVE numbers (n) AS "
    "(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {0}) SELECT n FROM numbers)",
}


def build_number_source(count: int) -> str:
    """Return a source of numbers in the SQL dialect of the app's database."""
    return _NUMBERS[db.engine.dialect.name].format(count)


@contextmanager
def round_trips() -> Iterator[list[None]]:
    """Collect one entry for each round trip of this process to Postgres."""
    found: list[None] = []
    wait = psycopg.Connection.wait

    def note(connection: Any, *rest: Any, **more: Any) -> Any:
        found.append(None)
        return wait(connection, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "wait", note)
        yield found
