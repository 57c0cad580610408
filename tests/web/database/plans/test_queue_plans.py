"""Tests that the states of queues are read with indexes, next to many finished rows."""

import pytest
from flask import Flask
from sqlalchemy import select, text

from domain.core.clock import read_system_clock
from domain.housekeeping.queues import QUEUES, QueueQuery, list_failing_queue_destinations
from models import SignIn, User
from tests.support.database.sql_statements import (
    assert_nothing_is_read_whole,
    build_number_source,
    collect_plans,
)
from tests.support.service.commands import operate
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

pytestmark = pytest.mark.both_databases
#: Statements that add finished rows, by table. `{numbers}` is a source of the numbers n.
_FINISHED = {
    "mails": """
INSERT INTO mails (key, recipient, subject, text, created_at, sent_at, tries)
SELECT 'key ' || n, 'a@x.example', 'Hi', '', '2026-11-22', '2026-11-22', 1 FROM {numbers}""",
    "page_messages": """
INSERT INTO page_messages (contact_id, kind, created_at, ended_at, outcome, tries)
SELECT contacts.id, 'test', '2026-11-22', '2026-11-22', 'sent', 1 FROM contacts, {numbers}""",
    "webhook_deliveries": """
INSERT INTO webhook_deliveries (endpoint_id, project_id, message_id, event, body, state,
  created_at, queued_at, tries)
SELECT webhook_endpoints.id, 1, 'msg ' || n, 'alert.opened', '', 'delivered', '2026-11-22',
  '2026-11-22', 1 FROM webhook_endpoints, {numbers}""",
    "backchannel_sessions": """
INSERT INTO backchannel_sessions (application_id, sign_in_id, user_id, sid, due_at, tries)
SELECT applications.id, sign_ins.id, users.id, 'sid ' || n, '2026-11-22', 0
FROM applications, sign_ins, users, {numbers}""",
}
_COUNT = 3_000


@pytest.fixture
def filled(app: Flask) -> Flask:
    """An app whose queues have only finished rows."""
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop")
    operate(app, "webhooks", "create", "acme/shop", "--url", "https://hook.example/")
    operate(
        app,
        *("applications", "create", "Wiki", "--owner", "alice", "--scopes", "openid"),
        *("--redirect-uri", "https://client.example/callback"),
    )
    operate(
        app,
        *("contacts", "create", "alice", "--type", "email", "--address", "a@x.example"),
    )
    with app.app_context():
        session = db.session()
        user, now = session.scalars(select(User).limit(1)).one(), read_system_clock()
        session.add(SignIn(user_id=user.id, token_digest=b"x", created_at=now, expires_at=now))
        session.flush()
        for statement in _FINISHED.values():
            session.execute(text(statement.format(numbers=build_number_source(_COUNT))))
        if session.get_bind().dialect.name == "postgresql":  # No code analyzes SQLite.
            session.execute(text("ANALYZE"))
        session.commit()
    return app


def test_states_and_failing_destinations_do_not_read_finished_rows(filled: Flask) -> None:
    with filled.app_context():
        for table in _FINISHED:
            with collect_plans(f"FROM {table}", f"JOIN {table}") as found:
                for queue in QUEUES:
                    queue.get_state(db.session(), read_system_clock())
                list_failing_queue_destinations(get_unit_of_work(), QueueQuery())
            assert_nothing_is_read_whole(found, table)
