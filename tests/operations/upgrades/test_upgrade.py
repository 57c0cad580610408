"""Tests that an upgrade from release 0.1.0, a downgrade and another upgrade lose no data."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select, text, update

from domain.alerts.parsing.fingerprint import combine_with_monitor
from domain.core.keyring import Keyring
from models import Alert, Occurrence
from tests.support.database.catalog import read_catalog
from tests.support.database.former_release import THEN, FormerDatabase, on_postgres, on_sqlite
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from tests.support.service.live import close_app
from web.commands.backups.manifest import read_database_contents
from web.database.engine import open_engine
from web.database.schema import (
    UnknownRevisionError,
    get_newest_known_revision,
    migrate_to_newest,
    migrate_to_revision,
)
from web.extensions import db
from web.jobs.retention import assign_alerts_to_monitors
from web.settings.environment import Settings

pytestmark = pytest.mark.both_databases

#: The last migration of release 0.1.0.
_FIRST = "0051"
#: Tables that a migration or a host fills by itself.
_DERIVED = ("alert_search", "incident_search", "alert_changes")


@pytest.fixture
def former(settings: Settings, postgres: Postgres, tmp_path: Path) -> FormerDatabase:
    """Return a database of release 0.1.0, of the test's kind."""
    directory = tmp_path / "former"
    directory.mkdir()
    if settings.uses_sqlite:
        return on_sqlite(directory)
    return on_postgres(postgres, directory)


Catalog = Callable[[Settings], list[str]]


@pytest.fixture
def catalog(postgres: Postgres, tmp_path: Path) -> Catalog:
    """Return a function that lists the schema of a database, without sequences of projects."""

    def read(settings: Settings) -> list[str]:
        if not settings.uses_sqlite:
            # A dump writes some conditions differently, so both databases are dumped and restored.
            restored = postgres.restored(settings.database_url, tmp_path / "dump.sql")
            settings = replace(settings, database_url=restored)
        engine = open_engine(settings)
        with engine.connect() as connection:
            found = read_catalog(connection)
        engine.dispose()
        return [line for line in found if not line.startswith("relation S alert_iids_")]

    return read


def rows(settings: Settings) -> dict[str, int]:
    """Count the rows of each table."""
    engine = open_engine(settings)
    with engine.connect() as connection:
        found = read_database_contents(connection, Keyring(settings.secret_key)).rows
        connection.rollback()
    engine.dispose()
    return {name: count for name, count in found.items() if not name.startswith(_DERIVED)}


@pytest.mark.long
def test_the_first_migration_creates_the_tables_of_release_0_1_0(
    former: FormerDatabase,
    settings: Settings,
    catalog: Catalog,
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}" if settings.uses_sqlite else postgres.new_database()
    new = replace(settings, database_url=url)
    migrate_to_revision(new, _FIRST)
    made = catalog(new)
    assert len(made) > 1000
    assert made == catalog(former.settings)


@pytest.mark.long
def test_an_upgraded_database_has_the_schema_of_a_new_one(
    former: FormerDatabase, settings: Settings, catalog: Catalog
) -> None:
    migrate_to_newest(former.settings)
    assert catalog(former.settings) == catalog(settings)


@pytest.mark.long
def test_rows_survive_an_upgrade_a_downgrade_and_another_upgrade(former: FormerDatabase) -> None:
    before = rows(former.settings)
    assert len([count for count in before.values() if count]) > 45
    migrate_to_revision(former.settings, get_newest_known_revision())
    upgraded = rows(former.settings)
    assert {name: upgraded[name] for name in before} == before
    migrate_to_revision(former.settings, _FIRST)
    assert rows(former.settings) == before
    migrate_to_revision(former.settings, get_newest_known_revision())
    assert rows(former.settings) == upgraded


@pytest.mark.long
def test_an_upgraded_service_has_the_data_of_release_0_1_0(
    former: FormerDatabase, make_app: Callable[[Settings], Flask]
) -> None:
    migrate_to_newest(former.settings)
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


@pytest.mark.long
def test_open_alerts_of_release_0_1_0_belong_to_the_integration_of_their_last_report(
    former: FormerDatabase, make_app: Callable[[Settings], Flask]
) -> None:
    engine = open_engine(former.settings)
    with engine.begin() as connection:
        # Release 0.1.0 grouped reports of both integrations into one alert.
        connection.execute(text("UPDATE deliveries SET integration_id = 2 WHERE id = 4"))
    engine.dispose()
    migrate_to_newest(former.settings)
    app = make_app(former.settings)
    app.extensions["gatebell"] = replace(app.extensions["gatebell"], clock=lambda: THEN)
    client, key = app.test_client(), {"Authorization": f"Bearer {former.key}"}

    def post(fingerprint: str, **more: str) -> list[int]:
        body = {"title": "Disk", "fingerprint": fingerprint, **more}
        answer = client.post(former.endpoint, json=body, headers=key).json
        assert answer is not None
        return [each["iid"] for each in answer]

    def owners() -> dict[int, tuple[int | None, bytes]]:
        with app.app_context():
            rows = db.session.scalars(select(Alert).order_by(Alert.id)).all()
            return {
                row.iid: (row.integration_id, combine_with_monitor(row.fingerprint, row.monitor_id))
                for row in rows
                if row.fingerprint is not None
            }

    before = owners()
    # Integrations share their alerts as before, until the worker has given all of them monitors.
    assert post("disk", end_time="2026-11-23T00:00:00Z") == [3]
    assert post("another") == [6]
    with app.app_context():
        change = update(Alert).where(Alert.iid == 3).values(status="acknowledged", ended_at=None)
        db.session.execute(change)
        db.session.execute(
            update(Occurrence)
            .where(Occurrence.alert_id == 3)
            .values(delivery_id=4, item_index=1)
            .where(Occurrence.delivery_id > 4)
        )
        db.session.commit()
    assign_alerts_to_monitors(former.settings)

    after = owners()
    assert after[3] == (2, before[3][1])
    assert {iid: after[iid] for iid in before if iid != 3} == {
        iid: found for iid, found in before.items() if iid != 3
    }
    assert post("disk") == [7]
    assert post("another") == [6]
    close_app(app)


def test_an_unknown_migration_is_rejected(settings: Settings) -> None:
    with pytest.raises(UnknownRevisionError, match="9999 is not a migration"):
        migrate_to_revision(settings, "9999")
