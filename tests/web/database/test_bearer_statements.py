"""Tests of the database statements that check a personal access token."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, update

from domain.accounts.users import NewUser, create_user
from domain.core.randomness import generate_random_password
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from models import PersonalAccessToken
from tests.support.database.sql_statements import (
    SentStatement,
    collect_postgres_statements,
    collect_statements,
)
from tests.support.sign_in.password_rules import RULES
from web.extensions import db
from web.services import get_current_time, get_services


@pytest.fixture
def token(app: Flask) -> str:
    """Create a user's token that was not used yet."""
    with app.app_context():
        password = generate_random_password()
        new = NewUser(username="alice", email="alice@a.example", name="Alice", password=password)
        user = create_user(new, session=db.session(), now=get_current_time(), rules=RULES)
        made = create_personal_token(
            user.id,
            TokenDetails(name="x", scopes="api", expires_at=get_current_time() + timedelta(days=9)),
            session=db.session(),
            keyring=get_services().keyring,
            now=get_current_time(),
        )
        db.session.commit()
        return made.clear


def test_a_check_is_one_statement_and_a_use_is_recorded_once_a_minute(
    app: Flask, client: FlaskClient, token: str
) -> None:
    with collect_statements(app) as found:
        for _ in range(5):
            answer = client.get("/api/v4/version", headers={"PRIVATE-TOKEN": token})
            assert answer.status_code == 200

    asked = [each.partition(" ")[0] for each in found if "personal_access_tokens" in each]
    assert asked == ["SELECT", "UPDATE", *["SELECT"] * 4]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_recording_a_use_does_not_wait_for_the_disk(
    app: Flask, client: FlaskClient, token: str
) -> None:
    with collect_postgres_statements() as found:
        client.get("/api/v4/version", headers={"PRIVATE-TOKEN": token})
    (written,) = (each for each in found if each[0].startswith("UPDATE personal_access_tokens"))
    with app.app_context():
        db.session.execute(update(PersonalAccessToken).values(last_used_at=None))
        # The setting applies only to the transaction that records the use.
        assert _commits(written) == "off"
        used_at = db.session.scalar(select(PersonalAccessToken.last_used_at))
        db.session.commit()
        assert _commits() == "on"
    assert used_at is not None


def _commits(first: SentStatement | None = None) -> str:
    """Run a statement, and return the synchronous_commit setting of its transaction."""
    connection: Any = db.session.connection().connection.driver_connection
    if first is not None:
        query, values = first
        kind = psycopg.RawCursor if "$1" in query else psycopg.Cursor
        kind(connection).execute(query, values)
    ((setting,),) = connection.execute("SHOW synchronous_commit").fetchall()
    return str(setting)
