"""A service in this process that records calls: its users, tokens and stored calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

from blueprints.accounts.sign_in.attempts import create_sign_in_and_redirect
from domain.access.roles import Role
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.accounts.users import NewUser, UserView, create_user
from domain.core.keyring import CredentialType, Keyring
from domain.oauth.clients.applications import store_application
from domain.oauth.clients.types import ApplicationDetails
from domain.oauth.personal_tokens.resource_tokens import ResourceTokenRequest, create_resource_token
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from domain.projects import namespace_changes
from domain.projects.members import OPERATOR_VIEWER
from domain.releases.usage.call_counts import Consumer, UsageSignature
from models import AccessToken, CallCount, CallSignature, InstanceSetting
from tests.support.accounts.namespaces import get_namespace
from tests.support.sign_in.password_rules import RULES
from web.database.engine import open_engine
from web.http.transactions import allow_writes
from web.settings.environment import Settings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Caller:
    """A user or application that calls the API with a token."""

    service: "RecordedService"
    token: str = field(repr=False)

    def __call__(self, method: str, path: str, **sent: Any) -> TestResponse:
        """Call the API; `path` begins below /api/v4."""
        headers = {"Authorization": f"Bearer {self.token}", **sent.pop("headers", {})}
        client = self.service.app.test_client()
        return client.open(f"/api/v4{path}", method=method, headers=headers, **sent)


class RecordedService:
    """The app with a clock that tests set."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        """Start at noon."""
        self.app = app
        self.settings = settings
        self.keyring = Keyring(settings.secret_key)
        self.engine = open_engine(settings)
        self.now = NOON
        own = app.extensions["gatebell"]
        app.extensions["gatebell"] = replace(own, clock=lambda: self.now)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open the database; changes are committed at the end."""
        with Session(self.engine) as session, session.begin():
            yield session

    def wait(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)

    def change_release(self, release: str) -> None:
        """Change the release as another host does, and let the app read it immediately."""
        with self.session() as session:
            session.merge(InstanceSetting(name="release", value=release, updated_at=self.now))
        self.app.extensions["gatebell"].live_settings._read_at = float("-inf")  # noqa: SLF001 - quicker than a second

    def person(self, username: str, *, admin: bool = False) -> UserView:
        """Create a user."""
        new = NewUser(
            username=username,
            email=f"{username}@people.example",
            name=username.capitalize(),
            password="a-pass-phrase-of-words",
            is_admin=admin,
        )
        with self.session() as session:
            return create_user(new, session=session, now=self.now, rules=RULES)

    def token_of(self, person: UserView, name: str = "nightly") -> Caller:
        """Create a personal access token for a user."""
        scopes = "api admin_mode" if person.is_admin else "api"
        details = TokenDetails(name=name, scopes=scopes, expires_at=self.now + timedelta(days=360))
        with self.session() as session:
            made = create_personal_token(
                person.id, details, session=session, keyring=self.keyring, now=self.now
            )
            return Caller(self, made.clear)

    def application_of(self, owner: UserView, name: str = "Deploy Board") -> int:
        """Register an application, and return its id."""
        details = ApplicationDetails(
            name=name,
            redirect_uris=("https://board.example/callback",),
            scopes=("api", "read_user"),
            confidential=True,
            require_pkce=False,
        )
        with self.session() as session:
            made, _ = store_application(
                details, owner_id=owner.id, session=session, keyring=self.keyring, now=self.now
            )
            return made.id

    def grant(self, application_id: int, person: UserView) -> Caller:
        """Issue an access token of a user to an application."""
        made = self.keyring.issue_credential(CredentialType.ACCESS_TOKEN)
        with self.session() as session:
            session.add(
                AccessToken(
                    application_id=application_id,
                    user_id=person.id,
                    digest=made.digest,
                    scopes="api",
                    created_at=self.now,
                    expires_at=self.now + timedelta(days=360),
                )
            )
        return Caller(self, made.clear)

    def project_of(self, owner: UserView, group: str = "acme") -> int:
        """Create a project in a new group, both owned by a user; return the project's id."""
        with self.session() as session:
            made = namespace_changes.create_group(
                group, reserved=frozenset(), session=session, now=self.now
            )
            namespace_changes.add_owner(made, owner.id, session=session, now=self.now)
            project = namespace_changes.create_project(
                f"{group}/shop",
                visibility="private",
                reserved=frozenset(),
                session=session,
                now=self.now,
            )
            assert project.id is not None
            return project.id

    def resource_token_of(self, path: str, name: str = "exporter") -> Caller:
        """Create an access token for a project."""
        details = TokenDetails(name=name, scopes="api", expires_at=self.now + timedelta(days=360))
        with self.session() as session:
            made = create_resource_token(
                get_namespace(path, session=session),
                ResourceTokenRequest(details=details, role=Role.MAINTAINER),
                viewer=OPERATOR_VIEWER,
                session=session,
                keyring=self.keyring,
                now=self.now,
            )
            return Caller(self, made.clear)

    def count(
        self, caller: Consumer, method: str, route: str, *changes: str, calls: int = 1
    ) -> None:
        """Count calls without sending them, with the changes that concern their values."""
        shape = UsageSignature(method, route, (), changes)
        for _ in range(calls):
            counter = self.app.extensions["gatebell"].calls
            counter.count_call(caller, shape, address="192.0.2.7", now=self.now)

    def browser_of(self, person: UserView) -> FlaskClient:
        """Sign a user in, as after a correct password."""
        with self.app.test_request_context(environ_overrides={"REMOTE_ADDR": "127.0.0.1"}):
            self.app.preprocess_request()
            allow_writes()
            proof = Authentication(user_id=person.id, methods=PASSWORD_METHODS)
            answer = self.app.process_response(
                self.app.make_response(create_sign_in_and_redirect(proof))
            )
        client = self.app.test_client()
        for line in answer.headers.getlist("Set-Cookie"):
            for name, morsel in SimpleCookie(line).items():
                client.set_cookie(name, morsel.value)
        return client

    def flush(self) -> bool:
        """Store the counted calls."""
        stored: bool = self.app.extensions["gatebell_calls"].flush_counts()
        return stored

    def rows(self) -> list[tuple[CallSignature, CallCount]]:
        """Return the stored calls, ordered by route."""
        with Session(self.engine) as session:
            found = session.execute(
                select(CallSignature, CallCount)
                .join(CallCount, CallCount.shape_id == CallSignature.id)
                .order_by(CallSignature.route, CallSignature.parameters, CallCount.id)
            )
            return [(row[0], row[1]) for row in found]
