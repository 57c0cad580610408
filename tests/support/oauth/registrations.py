"""Dynamic client registration with an app in this process."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from models import Application, User
from web.extensions import db
from web.services import get_current_time, get_services

CALLBACK = "https://client.example/callback"
GOOD: dict[str, Any] = {"redirect_uris": [CALLBACK], "client_name": "Robot"}
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
Open = Callable[..., FlaskClient]


def add_people(app: Flask) -> None:
    """Create an administrator and another user in an app."""
    with app.app_context():
        for name, is_admin in (("root", True), ("ada", False)):
            db.session.add(
                User(
                    username=name,
                    email=f"{name}@people.example",
                    name=name.capitalize(),
                    password_hash="none that anybody could give",
                    is_admin=is_admin,
                    created_at=get_current_time(),
                )
            )
        db.session.commit()


def token_of(visitor: FlaskClient, name: str, scopes: str = "api") -> dict[str, str]:
    with visitor.application.app_context():
        session = db.session()
        user_id = session.scalars(select(User.id).where(User.username == name)).one()
        details = TokenDetails(
            name="x", scopes=scopes, expires_at=get_current_time() + timedelta(days=9)
        )
        keyring = get_services().keyring
        made = create_personal_token(
            user_id, details, session=session, keyring=keyring, now=get_current_time()
        )
        session.commit()
        return {"Authorization": f"Bearer {made.clear}"}


def register(
    visitor: FlaskClient, body: Any = None, headers: dict[str, str] | None = None
) -> TestResponse:
    return visitor.post("/oauth/register", json=GOOD if body is None else body, headers=headers)


def row_of(visitor: FlaskClient, answer: TestResponse) -> Application:
    with visitor.application.app_context():
        uid = answer.get_json()["client_id"]
        return db.session.scalars(select(Application).where(Application.uid == uid)).one()


def assert_wrong(answer: TestResponse, error: str, status: int = 400) -> None:
    assert answer.status_code == status, answer.text
    body = answer.get_json()
    assert set(body) == {"error", "error_description", "error_uri", "request_id"}
    assert body["error"] == error
    assert body["error_description"].isascii()
    assert answer.headers["Cache-Control"] == "no-store"
