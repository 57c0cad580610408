"""Tests of spellings of names and addresses, on each database and in each locale."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select, text, update
from werkzeug.test import TestResponse

from domain.accounts.account_lists import AccountFilter, fetch_account_page
from domain.accounts.users import find_user, get_user
from domain.alerts.environments import EnvironmentFilter, create_environment, list_environments
from domain.core.database.pagination import KeysetRange
from domain.oauth.personal_tokens.token_lists import TokenFilter, find_tokens
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from models import Environment, Project, User
from tests.conftest import KINDS
from tests.support.accounts.people import now
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from tests.support.service.live import SECRET_KEY
from tests.support.wire.html_forms import forms_in
from web.database.engine import open_engine
from web.database.schema import migrate_to_newest
from web.extensions import db
from web.jobs.retention import prune_database, update_daily_counts
from web.services import get_services
from web.settings.environment import Settings, parse_settings

PASSWORD = "correct horse battery staple"
PLAIN = "plain postgres"


@pytest.fixture(scope="session")
def migrated_plain(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated database to copy, whose locale knows only the letters a to z."""
    url = postgres.new_plain_database()
    directory = tmp_path_factory.mktemp("plain")
    environment = {"INSTANCE_PATH": str(directory), "DATABASE_URL": url, "SECRET_KEY": SECRET_KEY}
    migrate_to_newest(parse_settings(environment))
    return url


@pytest.fixture(params=[*KINDS, PLAIN])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind, and one whose locale knows only the letters a to z."""
    if request.param == "sqlite":
        file = tmp_path / "gatebell.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), file)
        return f"sqlite:///{file}"
    server: Postgres = request.getfixturevalue("postgres")
    template = "migrated_plain" if request.param == PLAIN else "migrated_postgres"
    return server.new_database(template=request.getfixturevalue(template))


@pytest.fixture
def context(app: Flask) -> Iterator[None]:
    with app.app_context():
        yield


def make(app: Flask, name: str, email: str, display_name: str = "") -> None:
    arguments = ("--email", email, "--display-name", display_name, "--password-stdin")
    done = app.test_cli_runner().invoke(args=["users", "create", name, *arguments], input=PASSWORD)
    assert done.exit_code == 0, done.output


def send(client: FlaskClient, path: str, **values: str) -> TestResponse:
    """Submit the form of a page that has these fields."""
    fields = next(form for form in forms_in(client.get(path).text) if form.has(next(iter(values))))
    return client.post(path, data=dict(fields.filled(**values)))


def sign_in(app: Flask, login: str) -> FlaskClient | None:
    client = app.test_client()
    answer = send(client, "/users/sign_in", login=login, password=PASSWORD)
    return client if answer.status_code == 302 else None


def test_a_user_can_sign_in_with_every_spelling(app: Flask) -> None:
    make(app, "joerg", "JÖRG@people.example")
    spellings = ("JÖRG@people.example", "jörg@people.example", "Jo\u0308rg@PEOPLE.example", "JOERG")
    for login in spellings:
        client = sign_in(app, login)
        assert client is not None, login
        assert "joerg" in client.get("/-/user_settings/profile").text, login


@pytest.mark.long
def test_an_address_of_another_user_is_rejected_in_every_spelling(app: Flask) -> None:
    make(app, "joerg", "JÖRG@people.example")
    make(app, "bob", "bob@people.example")
    client = sign_in(app, "bob")
    assert client is not None
    for taken in ("jörg@people.example", "JÖRG@people.example"):
        answer = send(
            client, "/-/user_settings/profile", name="Bob", email=taken, current_password=PASSWORD
        )
        # The response does not show that the address is taken, but its owner keeps it.
        assert answer.status_code == 302, taken
        assert sign_in(app, "bob@people.example") is not None, taken
        done = app.test_cli_runner().invoke(args=["users", "create", "new", "--email", taken])
        assert done.exit_code == 1, taken
        assert "already exists" in done.stderr, taken
    # A user can change the case of the own address.
    joerg = sign_in(app, "joerg")
    assert joerg is not None
    answer = send(
        joerg,
        "/-/user_settings/profile",
        name="J",
        email="jÖrg@people.example",
        current_password=PASSWORD,
    )
    assert answer.status_code == 302
    verified = app.test_cli_runner().invoke(
        args=["users", "change", "joerg", "--email", "jÖrg@people.example"]
    )
    assert verified.exit_code == 0, verified.stderr
    assert sign_in(app, "JÖRG@people.example") is not None


@pytest.mark.long
@pytest.mark.usefixtures("context")
def test_searches_find_every_spelling(app: Flask) -> None:
    make(app, "asa", "åsa@people.example", display_name="Åsa Ødegård")
    user = get_user("asa", session=db.session())
    for word in ("ÅSA", "ødegård", "ØDEGÅRD", "\uff21\uff53\uff41"):
        found = fetch_account_page(
            AccountFilter(search=word), KeysetRange(size=9), session=db.session(), base_url=""
        )
        assert [account.username for account in found.items] == ["asa"], word
    details = TokenDetails(name="Überwachung", scopes="api", expires_at=now() + timedelta(days=9))
    create_personal_token(
        user.id, details, session=db.session(), keyring=get_services().keyring, now=now()
    )
    tokens = find_tokens(
        TokenFilter(owner_id=user.id, search="üBER"), session=db.session(), now=now()
    )
    assert [token.name for token in tokens.items] == ["Überwachung"]


@pytest.mark.long
@pytest.mark.usefixtures("context")
def test_environments_are_found_in_every_spelling_regardless_of_their_creator(
    app: Flask, settings: Settings
) -> None:
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    session = db.session()
    project_id = session.scalars(select(Project.id)).one()
    create_environment(project_id, "Übung", session=session, now=now())
    # Database triggers insert an environment like this for an alert with a new name.
    made = {"project": project_id, "name": "Prüfung", "at": now().isoformat()}
    session.execute(
        text(
            "INSERT INTO environments (project_id, name, created_at) VALUES (:project, :name, :at)"
        ),
        made,
    )
    session.commit()
    update_daily_counts(settings)
    for word, name in (("üBU", "Übung"), ("PRÜF", "Prüfung")):
        wanted = EnvironmentFilter(project_id=project_id, search=word)
        found = list_environments(wanted, None, size=9, session=session)
        assert [environment.name for environment in found.items] == [name]
    assert session.scalars(select(Environment.name_key).order_by(Environment.name_key)).all() == [
        "prüfung", "übung"
    ]  # fmt: skip


# Data from former releases


INSERT = text(
    "INSERT INTO users (username, email, name, password_hash, is_admin, state, kind, "
    "must_change_password, created_at) "
    "VALUES (:username, :email, :name, '!', false, 'active', 'human', false, '2026-01-01 00:00:00')"
)


def insert(engine: Engine, username: str, email: str) -> None:
    with engine.begin() as connection:
        connection.execute(INSERT, {"username": username, "email": email, "name": "Jörg"})


# A database whose locale knows these letters rejected the second address itself.
@pytest.mark.parametrize("database_url", ["sqlite", PLAIN], indirect=True)
@pytest.mark.long
def test_the_older_of_two_users_keeps_a_shared_address(app: Flask, settings: Settings) -> None:
    engine = open_engine(settings)
    insert(engine, "joerg", "JÖRG@people.example")
    insert(engine, "bob", "bob@people.example")
    insert(engine, "carol", "carol@people.example")
    with engine.begin() as connection:
        # Release 0.1.0 left such rows if an older account had the address in other letters.
        for name, email, key in (
            ("joerg", "JÖRG@people.example", "jörg@people.example"),
            ("bob", "jörg@people.example", None),
        ):
            connection.execute(
                text("UPDATE users SET email = :email, email_key = :key WHERE username = :name"),
                {"email": email, "key": key, "name": name},
            )
    engine.dispose()
    with app.app_context():
        session = db.session()
        for login in ("JÖRG@people.example", "jörg@people.example", "joerg"):
            found = find_user(login, session=session)
            assert found is not None
            assert found.username == "joerg", login
        bob = get_user("bob", session=session)
        assert (bob.email, bob.is_found_by_email) == ("jörg@people.example", False)
        assert get_user("CAROL@people.example", session=session).username == "carol"
        # After the older user changes the address, the worker gives it to the other user.
        joerg = session.get_one(User, get_user("joerg", session=session).id)
        joerg.email = "joerg@people.example"
        session.commit()
        prune_database(settings)
        session.expire_all()
        assert get_user("JÖRG@people.example", session=session).username == "bob"


@pytest.mark.long
def test_a_user_created_by_a_host_of_the_former_version_is_found(
    app: Flask, settings: Settings
) -> None:
    engine = open_engine(settings)
    insert(engine, "Dave", "DÄVE@people.example")
    with app.app_context():
        assert get_user("dave", session=db.session()).username == "Dave"
        # Such a host changes the address but not the folded address.
        db.session.execute(update(User).values(email="Ünal@people.example"))
        db.session.commit()
    prune_database(settings)
    with app.app_context():
        assert get_user("üNAL@people.example", session=db.session()).username == "Dave"
    engine.dispose()
