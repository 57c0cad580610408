"""Tests of `gatebell upgrade-check`, which lists effects of the new release before a migration."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import text

from tests.support.database.former_release import FormerDatabase, on_postgres, on_sqlite
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from web.extensions import db
from web.settings.environment import Settings

MakeApp = Callable[[Settings], Flask]


@pytest.fixture
def former(settings: Settings, postgres: Postgres, tmp_path: Path) -> FormerDatabase:
    """Return a database of release 0.1.0, of the test's kind."""
    directory = tmp_path / "former"
    directory.mkdir()
    return on_sqlite(directory) if settings.uses_sqlite else on_postgres(postgres, directory)


def effects(app: Flask) -> tuple[int, dict[str, str]]:
    done = app.test_cli_runner().invoke(args=["upgrade-check"])
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == {"migration", "effects"}
    listed = found["effects"]
    return done.exit_code, {each["subject"]: each["message"] for each in listed}


def test_a_database_of_the_first_release_is_checked_without_a_migration(
    former: FormerDatabase, make_app: MakeApp
) -> None:
    app = make_app(former.settings)
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO instance_settings (name, value, updated_at) "
                "VALUES ('page_size', 'many', '2026-01-01 00:00:00')"
            )
        )
    status, found = effects(app)
    assert status == 1
    assert found == {
        "setting PAGE_SIZE": (
            "PAGE_SIZE must be a whole number from 5 to 200, not 'many'. "
            "The stored value is ignored."
        )
    }


@pytest.mark.long
def test_contacts_and_webhooks_that_become_unreachable_are_listed(
    settings: Settings, make_app: MakeApp
) -> None:
    allowing = replace(
        settings,
        outgoing_private_addresses="127.0.0.0/8",
        outgoing_contact_hosts="127.0.0.1:1-65535",
    )
    app = make_app(allowing)
    operate(app, "users", "create", "alice", "--email", "alice@acme.example")
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    url = "ntfy://127.0.0.1:8080/page"
    operate(app, "contacts", "create", "alice", "--type", "apprise", "--address", url)
    operate(app, "webhooks", "create", "acme/shop", "--url", "http://127.0.0.1:8080/hook")
    assert effects(app) == (0, {})
    status, found = effects(make_app(settings))
    assert status == 1
    (contact, webhook) = sorted(found)
    assert contact.endswith("of user alice")
    assert "OUTGOING_CONTACT_HOSTS" in found[contact]
    assert webhook.startswith("webhook ")
    assert "OUTGOING_PRIVATE_ADDRESSES" in found[webhook]
