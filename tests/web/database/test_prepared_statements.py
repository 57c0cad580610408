"""Tests that prepared statements of hot paths stay correct for a connection's lifetime."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.web.database.test_database import services_of
from web.database.autocommit_pool import AutocommitPool

pytestmark = pytest.mark.one_database("postgres")

_SUM = text("SELECT CAST(:a AS bigint) + 1, CAST(:b AS text)")
_PREPARED = text("SELECT count(*) FROM pg_prepared_statements")
_NEGATIVE = text("SELECT CAST(:a AS int) / CAST(:b AS int)")


def _sums(connections: AutocommitPool, *pairs: tuple[Any, Any]) -> list[tuple[Any, ...]]:
    return [tuple(connections.execute_statement(_SUM, {"a": a, "b": b})[0]) for a, b in pairs]


def test_a_statement_accepts_values_of_other_types(app: Flask) -> None:
    connections = services_of(app).connections
    pairs = ((1, "x"), (2**40, None), (None, "é"), (1, "x"))
    assert _sums(connections, *pairs) == [(2, "x"), (2**40 + 1, None), (None, "é"), (2, "x")]


def test_a_connection_prepares_a_hundred_statements_and_forgets_the_oldest(app: Flask) -> None:
    connections = services_of(app).connections
    for number in [*range(120), 0]:
        assert connections.fetch_first_row(text(f"SELECT :a + {number}"), {"a": 1}) == (1 + number,)
    found = connections.fetch_first_row(_PREPARED, {})
    assert found is not None
    assert 90 < found[0] <= 101


def test_statements_survive_an_error_and_a_rollback(app: Flask) -> None:
    connections = services_of(app).connections

    def fail() -> None:
        _sums(connections, (1, "x"))
        connections.execute_statement(_NEGATIVE, {"a": 1, "b": 0})

    # psycopg would prepare BEGIN after five executions, and forget all statements at a ROLLBACK.
    for _ in range(7):
        connections.run_transaction(lambda: _sums(connections, (1, "x")))
    with pytest.raises(DBAPIError, match="division by zero"):
        connections.run_transaction(fail)
    assert _sums(connections, (1, "x")) == [(2, "x")]
