"""How often checking a personal access token asks the database."""

from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from domain.accounts.users import NewUser, create_user
from domain.oauth.personal_tokens.tokens import TokenDetails, create_token
from domain.randomness import random_password
from tests.support.database.sql_statements import statements_of
from tests.support.signing_in.password_rules import RULES
from web.extensions import db
from web.services import now, services


@pytest.fixture
def token(app: Flask) -> str:
    """A token of somebody's, not used yet."""
    with app.app_context():
        password = random_password()
        new = NewUser(username="alice", email="alice@a.example", name="Alice", password=password)
        user = create_user(new, session=db.session(), now=now(), rules=RULES)
        made = create_token(
            user.id,
            TokenDetails(name="x", scopes="api", expires_at=now() + timedelta(days=9)),
            session=db.session(),
            keyring=services().keyring,
            now=now(),
        )
        db.session.commit()
        return made.clear


def test_a_check_is_one_statement_and_a_use_is_written_down_once_a_minute(
    app: Flask, client: FlaskClient, token: str
) -> None:
    with statements_of(app) as found:
        for _ in range(5):
            answer = client.get("/api/v4/version", headers={"PRIVATE-TOKEN": token})
            assert answer.status_code == 200

    asked = [each.partition(" ")[0] for each in found if "personal_access_tokens" in each]
    assert asked == ["SELECT", "UPDATE", *["SELECT"] * 4]
