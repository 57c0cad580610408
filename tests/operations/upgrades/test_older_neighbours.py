"""Tests that PostgreSQL rejects the alert counters of hosts older than release 0.1.0."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app import create_app
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from tests.support.service.live import SECRET_KEY, close_app
from web.database.engine import open_engine
from web.settings.environment import Settings, parse_settings

#: Statement of code from before 0.1.0.
_COUNT = "UPDATE alert_counters SET last_iid = last_iid + 1"


@pytest.fixture
def settings(postgres: Postgres, migrated_postgres: str, tmp_path: Path) -> Settings:
    environment = {
        "BASE_URL": "http://localhost",
        "INSTANCE_PATH": str(tmp_path),
        "DATABASE_URL": postgres.new_database(template=migrated_postgres),
        "SECRET_KEY": SECRET_KEY,
    }
    return parse_settings(environment)


@contextmanager
def database(settings: Settings) -> Iterator[Connection]:
    engine = open_engine(replace(settings, database_statement_timeout_ms=0))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def host(settings: Settings) -> Iterator[Flask]:
    app = create_app(settings)
    try:
        yield app
    finally:
        close_app(app)


def integration(app: Flask) -> dict[str, str]:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop")
    made = ("integrations", "create", "acme/shop", "--type", "http", "--name", "Nagios")
    return operate(app, *made)


def number_of(app: Flask, endpoint: dict[str, str], title: str) -> int:
    path = endpoint["url"].removeprefix("http://localhost")
    key = {"Authorization": f"Bearer {endpoint['key']}"}
    answer = app.test_client().post(path, json={"title": title}, headers=key)
    assert answer.status_code == 200, answer.text
    iid: int = answer.json[0]["iid"]  # type: ignore[index]
    return iid


def test_an_older_host_is_rejected_with_a_reason_and_newer_hosts_continue(
    settings: Settings,
) -> None:
    with host(settings) as app:
        endpoint = integration(app)
        assert number_of(app, endpoint, "one") == 1
        with pytest.raises(DBAPIError, match="update it"), database(settings) as connection:
            connection.execute(text(_COUNT))
        assert number_of(app, endpoint, "two") == 2
