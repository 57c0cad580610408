"""Tests of the statement timeout on both databases."""

from collections.abc import Callable
from dataclasses import replace
from time import monotonic, sleep

import pytest
from flask import Flask
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.web.database.test_database import services_of
from web.extensions import db
from web.settings.environment import Settings

ENDLESS = {
    "sqlite": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT count(*) FROM n WHERE i < 0"
    ),
    "postgresql": "SELECT pg_sleep(600)",
}
ROWS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    " SELECT i FROM n"
)


@pytest.fixture
def hasty(settings: Settings, make_app: Callable[[Settings], Flask]) -> Flask:
    return make_app(replace(settings, database_statement_timeout_ms=2_000))


@pytest.mark.long
def test_an_endless_statement_of_a_page_is_cancelled(hasty: Flask) -> None:
    with hasty.app_context():
        statement, began = text(ENDLESS[db.engine.dialect.name]), monotonic()
        with pytest.raises(DBAPIError):
            db.session.execute(statement).all()
        assert monotonic() - began < 10
        db.session.rollback()
        assert db.session.scalar(text("SELECT 1")) == 1


def test_an_endless_statement_of_a_hot_path_is_cancelled(hasty: Flask) -> None:
    connections, began = services_of(hasty).connections, monotonic()
    with pytest.raises(DBAPIError):
        connections.execute_statement(text(ENDLESS[connections.dialect_name]))
    assert monotonic() - began < 10
    assert connections.fetch_first_row(text("SELECT 1"), {}) is not None


@pytest.mark.long
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_time_between_rows_does_not_count_as_statement_time(hasty: Flask) -> None:
    with hasty.app_context():
        rows = iter(db.session.execute(text(ROWS)))
        next(rows)
        sleep(2.5)
        assert sum(1 for _ in rows) == 19_999
