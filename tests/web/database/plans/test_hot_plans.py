"""Tests that statements of hot paths use the right indexes on new PostgreSQL tables."""

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from flask import Flask

from tests.support.alerts.senders import JSON, item, resolved, webhook
from tests.support.database.sql_statements import SentStatement, collect_postgres_statements
from tests.support.service.commands import operate
from web.extensions import db

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


def sent_by(app: Flask, ask: Callable[[], object]) -> list[SentStatement]:
    """Return the statements of a request, with their values."""
    with app.app_context(), collect_postgres_statements() as found:
        ask()
    return found


def plan_of(app: Flask, statement: SentStatement) -> str:
    """Return the plan of PostgreSQL before it has collected statistics."""
    query, values = statement
    with app.app_context():
        connection: Any = db.session.connection().connection.driver_connection
        # Without this setting, PostgreSQL scans an empty table in spite of its indexes.
        connection.execute("SET LOCAL enable_seqscan = off")
        kind = psycopg.RawCursor if "$1" in query else psycopg.Cursor
        lines = kind(connection).execute(f"EXPLAIN {query}", values).fetchall()
        db.session.rollback()
    return "\n".join(line for (line,) in lines)


def made(app: Flask, kind: str) -> dict[str, Any]:
    operate(app, "users", "create", "alice", "--email", "alice@example.org")
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    return operate(app, "integrations", "create", "acme/shop", "--type", kind, "--name", "Hook")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "body", "words", "conditions"),
    [
        (
            "http",
            b'{"title": "new", "start_time": "2026-11-21T07:00:00Z"}',
            "WITH next_delivery",
            ["fingerprint = ", "fingerprint = "],
        ),
        (
            "prometheus",
            webhook(resolved("a"), item("b")),
            "wanted",
            ["fingerprint = ", "fingerprint = "],
        ),
        ("prometheus", webhook(item("other 1"), item("b")), "WITH touched", ["id = touched.id"]),
    ],
)
def test_an_alert_is_found_by_its_fingerprint_and_changed_by_its_id(
    app: Flask, kind: str, body: bytes, words: str, conditions: list[str]
) -> None:
    integration = made(app, kind)
    path = integration["url"].removeprefix("http://localhost")
    headers = {"Authorization": f"Bearer {integration['key']}", "Content-Type": JSON}
    client = app.test_client()
    crowd = webhook(*(item(f"other {number}") for number in range(300)))
    assert client.post(path, data=crowd, headers=headers).status_code == 200
    asked = sent_by(app, lambda: client.post(path, data=body, headers=headers))
    (statement,) = (each for each in asked if words in each[0])
    plan = plan_of(app, statement)
    found_by = re.findall(r"Index Cond: \((.*)\)", plan)
    assert len(found_by) == len(conditions), plan
    assert all(map(str.__contains__, found_by, conditions)), plan
    assert "Seq Scan" not in plan
    (lookup,) = (each for each in asked if "integrations.endpoint_identifier =" in each[0])
    assert "uq_integrations_endpoint_identifier" in plan_of(app, lookup)


def test_a_token_is_found_by_its_digest(app: Flask) -> None:
    made(app, "http")
    token = operate(app, "tokens", "create", "alice", "--name", "n", "--scopes", "api")["token"]
    headers = {"PRIVATE-TOKEN": token}
    asked = sent_by(app, lambda: app.test_client().get("/api/v4/user", headers=headers))
    (statement,) = (each for each in asked if each[0].startswith("SELECT users"))
    assert "uq_personal_access_tokens_digest" in plan_of(app, statement)
