"""A database of release 0.1.0 is upgraded, taken back and upgraded again, and nothing is lost."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask

from domain.keyring import Keyring
from tests.support.database.catalog import catalog_of
from tests.support.database.former_release import THEN, FormerDatabase, on_postgres, on_sqlite
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from tests.support.service.live import close_app
from web.commands.backups.manifest import read_contents
from web.database.engine import open_engine
from web.database.schema import UnknownRevisionError, migrate, move_to, newest_known_revision
from web.settings.reader import Settings

pytestmark = pytest.mark.both_databases

#: Where release 0.1.0 ends.
_FIRST = "0051"
#: What a migration or a host writes by itself.
_DERIVED = ("alert_search", "incident_search", "alert_changes")


@pytest.fixture
def former(settings: Settings, postgres: Postgres, tmp_path: Path) -> FormerDatabase:
    """A database of release 0.1.0, of the kind that the test runs on."""
    directory = tmp_path / "former"
    directory.mkdir()
    if settings.uses_sqlite:
        return on_sqlite(directory)
    return on_postgres(postgres, directory)


Catalog = Callable[[Settings], list[str]]


@pytest.fixture
def catalog(postgres: Postgres, tmp_path: Path) -> Catalog:
    """Returns what a database is made of, but for the sequence of each project."""

    def read(settings: Settings) -> list[str]:
        if not settings.uses_sqlite:
            # A dump writes some conditions in other words.
            restored = postgres.restored(settings.database_url, tmp_path / "dump.sql")
            settings = replace(settings, database_url=restored)
        engine = open_engine(settings)
        with engine.connect() as connection:
            found = catalog_of(connection)
        engine.dispose()
        return [line for line in found if not line.startswith("relation S alert_iids_")]

    return read


def rows(settings: Settings) -> dict[str, int]:
    """Count what is in each table."""
    engine = open_engine(settings)
    with engine.connect() as connection:
        found = read_contents(connection, Keyring(settings.secret_key)).rows
        connection.rollback()
    engine.dispose()
    return {name: count for name, count in found.items() if not name.startswith(_DERIVED)}


@pytest.mark.long
def test_the_first_migration_makes_the_tables_of_release_0_1_0(
    former: FormerDatabase,
    settings: Settings,
    catalog: Catalog,
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}" if settings.uses_sqlite else postgres.new_database()
    new = replace(settings, database_url=url)
    move_to(new, _FIRST)
    made = catalog(new)
    assert len(made) > 1000
    assert made == catalog(former.settings)


@pytest.mark.long
def test_an_upgraded_database_is_made_of_what_a_new_one_is(
    former: FormerDatabase, settings: Settings, catalog: Catalog
) -> None:
    migrate(former.settings)
    assert catalog(former.settings) == catalog(settings)


@pytest.mark.long
def test_rows_outlive_the_upgrade_and_a_way_back_and_forth(former: FormerDatabase) -> None:
    before = rows(former.settings)
    assert len([count for count in before.values() if count]) > 45
    move_to(former.settings, newest_known_revision())
    upgraded = rows(former.settings)
    assert {name: upgraded[name] for name in before} == before
    move_to(former.settings, _FIRST)
    assert rows(former.settings) == before
    move_to(former.settings, newest_known_revision())
    assert rows(former.settings) == upgraded


@pytest.mark.long
def test_an_upgraded_service_goes_on_where_release_0_1_0_ended(
    former: FormerDatabase, make_app: Callable[[Settings], Flask]
) -> None:
    migrate(former.settings)
    app = make_app(former.settings)
    app.extensions["gatebell"] = replace(app.extensions["gatebell"], clock=lambda: THEN)
    client = app.test_client()
    path = f"/api/v4/projects/{former.project.replace('/', '%2F')}"
    headers = {"PRIVATE-TOKEN": former.token}
    found = client.get(path, headers=headers).json
    assert found is not None
    assert found["path_with_namespace"] == former.project
    for listed in ("webhooks", "silences", "escalation_policies", "alert_routes", "incident_rules"):
        answer = client.get(f"{path}/{listed}", headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.json, listed
    for body, iid in (({"title": "Disk", "fingerprint": "disk"}, 3), ({"title": "Another"}, 6)):
        key = {"Authorization": f"Bearer {former.key}"}
        answer = client.post(former.endpoint, json=body, headers=key)
        assert answer.json is not None
        assert [each["iid"] for each in answer.json] == [iid]
    assert operate(app, "audit", "verify")["intact"] is True
    close_app(app)


def test_a_migration_that_is_none_is_refused(settings: Settings) -> None:
    with pytest.raises(UnknownRevisionError, match="9999 is not a migration"):
        move_to(settings, "9999")
