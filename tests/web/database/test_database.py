"""Tests of the statements of a request, and of kept connections when something fails."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from time import sleep
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError

from domain.core.keyring import CredentialType
from models import AccessToken
from tests.support.accounts.people import now
from tests.support.alerts.senders import JSON, item, resolved, webhook
from tests.support.database.sql_statements import collect_statements
from tests.support.service.commands import operate
from web.database.autocommit_pool import AutocommitPool
from web.database.engine import open_engine
from web.extensions import db
from web.settings.environment import Settings


def receiver(app: Flask, kind: str) -> Callable[..., list[str]]:
    """Create an integration, and return a function that posts to it and returns its statements."""
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    made = operate(app, "integrations", "create", "acme/shop", "--type", kind, "--name", "Hook")
    path = made["url"].removeprefix("http://localhost")
    headers = {"Authorization": f"Bearer {made['key']}", "Content-Type": JSON}
    client = app.test_client()

    def post(body: bytes) -> list[str]:
        with collect_statements(app) as found:
            answer = client.post(path, data=body, headers=headers)
        assert answer.status_code == 200, answer.text
        assert "Set-Cookie" not in answer.headers
        return found

    post(webhook(item("warm")))  # The settings are read now, and the use of the key is recorded.
    return post


def without_settings(found: list[str]) -> list[str]:
    """Remove the statements for settings, which each process reads once a second."""
    return [statement for statement in found if "instance_settings" not in statement]


ON_POSTGRES = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


@pytest.mark.long
@ON_POSTGRES
@pytest.mark.parametrize("body", [b'{"title": "new"}', b'{"fingerprint": "x"}'])
def test_a_firing_alert_takes_two_statements_on_postgres(app: Flask, body: bytes) -> None:
    post = receiver(app, "http")
    for _ in range(3):
        assert len(without_settings(post(body))) == 2


@pytest.mark.long
def test_the_number_of_statements_does_not_grow_with_the_batch(app: Flask) -> None:
    post = receiver(app, "prometheus")
    counts = []
    for size in (2, 200):
        names = [f"{size}-{number}" for number in range(size)]
        post(webhook(*map(item, names[::2])))
        both = [item(name) for name in names] + [resolved(name) for name in names[:1]]
        counts.append(len(without_settings(post(webhook(*both)))))
    # On SQLite, the search words of changed alerts are stored by a separate statement.
    assert counts[0] == counts[1] <= 12


@pytest.mark.long
def test_a_token_and_its_owner_are_read_in_one_statement(app: Flask, client: FlaskClient) -> None:
    user = operate(app, "users", "create", "alice", "--email", "alice@example.org")
    application = operate(
        app, "applications", "create", "App", "--owner", "alice", "--scopes", "read_user",
        "--redirect-uri", "https://a.example/cb",
    )  # fmt: skip
    token = services_of(app).keyring.issue_credential(CredentialType.ACCESS_TOKEN)
    with app.app_context():
        values = {"user_id": user["id"], "application_id": application["id"]}
        moments = {"created_at": now(), "expires_at": now() + timedelta(hours=1)}
        row = AccessToken(digest=token.digest, scopes="read_user", **values, **moments)
        db.session.add(row)
        db.session.commit()
    headers = {"Authorization": f"Bearer {token.clear}"}
    for path, cost in (("/oauth/token/info", 1), ("/api/v4/user", 1)):
        # The first use is recorded, as one use is in each minute.
        client.get(path, headers=headers)
        with collect_statements(app) as found:
            answer = client.get(path, headers=headers)
        assert answer.status_code == 200
        assert len(without_settings(found)) == cost, found
        assert "Set-Cookie" not in answer.headers


def services_of(app: Flask) -> Any:
    return app.extensions["gatebell"]


@pytest.fixture
def connections(app: Flask) -> Iterator[AutocommitPool]:
    """Return the kept connections of this process."""
    found: AutocommitPool = services_of(app).connections
    yield found
    found.close_idle_connections()


ONE = text("SELECT 1")


@ON_POSTGRES
def test_successive_callers_share_one_connection(
    connections: AutocommitPool,
) -> None:
    assert (
        len({connections.execute_statement(text("SELECT pg_backend_pid()"))[0] for _ in range(5)})
        == 1
    )


@ON_POSTGRES
def test_a_read_on_a_stale_connection_is_tried_again(connections: AutocommitPool) -> None:
    (own,) = connections.execute_statement(text("SELECT pg_backend_pid()"))
    with pytest.raises(OperationalError):
        connections.execute_statement(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    (renewed,) = connections.execute_statement(text("SELECT pg_backend_pid()"))
    assert renewed != own
    connections.execute_statement(text("SET idle_session_timeout = 1"))
    sleep(0.1)
    assert connections.fetch_first_row(ONE, {}) is not None


def test_work_that_raises_is_rolled_back_and_the_connection_stays_usable(
    connections: AutocommitPool,
) -> None:
    def write_and_break() -> None:
        connections.execute_statement(text("CREATE TABLE half (id INTEGER)"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        connections.run_transaction(write_and_break)
    with pytest.raises(DBAPIError):
        connections.execute_statement(text("SELECT * FROM half"))
    assert connections.fetch_first_row(ONE, {}) is not None


@ON_POSTGRES
def test_a_connection_is_usable_after_a_rollback(connections: AutocommitPool) -> None:
    def ask_and_break() -> None:
        connections.fetch_first_row(ONE, {})
        raise ZeroDivisionError

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            connections.run_transaction(ask_and_break)
        assert connections.fetch_first_row(ONE, {}) is not None


@pytest.mark.long
def test_work_is_retried_after_a_conflict_with_a_limit(
    connections: AutocommitPool,
) -> None:
    class _Conflict(sqlite3.OperationalError):
        sqlstate = "40P01"

    tries: list[int] = []

    def conflict_until(good: int) -> Callable[[], int]:
        def work() -> int:
            tries.append(1)
            if len(tries) < good:
                raise OperationalError("", None, _Conflict())
            return len(tries)

        return work

    assert connections.run_transaction(conflict_until(3)) == 3
    tries.clear()
    with pytest.raises(OperationalError):
        connections.run_transaction(conflict_until(9))
    assert len(tries) == 5
    assert connections.fetch_first_row(ONE, {}) is not None


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_transaction_after_a_read_only_page_takes_the_write_lock(
    client: FlaskClient, settings: Settings
) -> None:
    assert client.get("/users/sign_in").status_code == 200
    engine = open_engine(settings)
    with closing(sqlite3.connect(engine.url.database or "", timeout=0)) as other:
        with engine.begin() as connection:
            connection.execute(text("SELECT count(*) FROM users")).all()
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")
    engine.dispose()
