"""Shares compiled statements between the engines of a session.

Most tests of jobs open a new database and would compile the same statements again, which takes a
quarter of their time.
"""

from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

#: Maximum number of statements; above it, all are dropped, to limit the memory of generated
#: statements.
_MOST_STATEMENTS = 3_000
_compiled: dict[Any, Any] = {}


def share_compiled_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share compiled statements between engines, which differ only in their addresses."""
    for dialect in (PGDialect_psycopg, SQLiteDialect_pysqlite):
        monkeypatch.setattr(dialect, "__eq__", lambda one, other: type(one) is type(other))
        monkeypatch.setattr(dialect, "__hash__", lambda dialect: hash(type(dialect)))
    event.listen(Engine, "engine_connect", _use_what_is_compiled)


def _use_what_is_compiled(connection: Connection) -> None:
    if len(_compiled) > _MOST_STATEMENTS:
        _compiled.clear()
    connection.execution_options(compiled_cache=_compiled)
