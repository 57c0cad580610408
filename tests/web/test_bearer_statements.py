"""How often checking a personal access token asks the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import event

from domain.accounts.users import NewUser, create_user
from domain.oauth.personal_tokens import TokenDetails, create_token
from domain.randomness import random_password
from web.extensions import db
from web.services import now, services


@pytest.fixture
def token(app: Flask) -> str:
    """A token of somebody's, not used yet."""
    with app.app_context():
        password = random_password()
        new = NewUser(username="alice", email="alice@a.example", name="Alice", password=password)
        user = create_user(new, session=db.session(), now=now(), password_minimum=12)
        made = create_token(
            user.id,
            TokenDetails(name="x", scopes="api", expires_at=now() + timedelta(days=9)),
            session=db.session(),
            keyring=services().keyring,
            now=now(),
        )
        db.session.commit()
        return made.clear


@contextmanager
def statements(app: Flask) -> Iterator[list[str]]:
    """Write down the first words of what is asked of the table of tokens."""
    asked: list[str] = []

    def write_down(_connection: Any, _cursor: Any, text: str, *_rest: Any) -> None:
        if "personal_access_tokens" in text:
            asked.append(text.partition(" ")[0])

    with app.app_context():
        engine = db.engine
    event.listen(engine, "before_cursor_execute", write_down)
    yield asked
    event.remove(engine, "before_cursor_execute", write_down)


def test_a_check_is_one_statement_and_a_use_is_written_down_once_a_minute(
    app: Flask, client: FlaskClient, token: str
) -> None:
    with statements(app) as asked:
        for _ in range(5):
            answer = client.get("/api/v4/version", headers={"PRIVATE-TOKEN": token})
            assert answer.status_code == 200

    assert asked == ["SELECT", "UPDATE", *["SELECT"] * 4]
