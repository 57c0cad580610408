"""Tests of checks that prevent the service from starting on a wrong or unprepared database."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask

from tests.operations.conftest import RunHere
from tests.operations.programs import execute_statements, run
from tests.support.service.live import Done, LiveGatebell
from web.database.schema import IncompatibleSchemaError, migrate_to_newest
from web.database.startup_checks import check_database_if_available
from web.database.startup_errors import CannotStartError
from web.settings.environment import Settings, SettingsError, parse_settings

OTHER_KEY = "another key than this database was ever used with"
PROGRAMS = ("make run", "gunicorn", "worker")


@pytest.fixture
def live(settings: Settings, tmp_path: Path) -> LiveGatebell:
    """Return a stopped service on a migrated database."""
    return LiveGatebell(
        instance_path=tmp_path,
        database_url=settings.database_url,
        WEB_CONCURRENCY="1",
        SECRET_KEY=settings.secret_key,
    )


@pytest.fixture
def begin(run_here: RunHere) -> RunHere:
    """Return a function that starts a program; the web server runs in its own process."""

    def begin_one(live: LiveGatebell, program: str, **variables: str) -> Done:
        return (run if program == "gunicorn" else run_here)(live, program, **variables)

    return begin_one


@pytest.mark.long
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_wrong_secret_key_is_rejected_with_a_sentence(live: LiveGatebell, begin: RunHere) -> None:
    live.cli("users", "create", "alice", "--email", "alice@people.example")
    for program in PROGRAMS:
        done = begin(live, program, SECRET_KEY=OTHER_KEY)
        assert done.returncode != 0, program
        assert "SECRET_KEY is not the right key for this database" in done.stderr
        assert "Traceback" not in done.stderr
        assert OTHER_KEY not in done.stderr


@pytest.mark.long
def test_a_missing_secret_key_on_postgres_is_rejected_with_a_remedy(
    tmp_path: Path, begin: RunHere
) -> None:
    url = "postgresql://127.0.0.1:1/none"
    live = LiveGatebell(instance_path=tmp_path, database_url=url)
    for program in PROGRAMS:
        done = begin(live, program, SECRET_KEY="")
        assert done.returncode != 0
        assert done.stderr.startswith("SECRET_KEY must be set with Postgres"), done.stderr
        assert "openssl rand -hex 32" in done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "secret_key").write_text("k" * 64)
    with pytest.raises(SettingsError) as refused:
        parse_settings({"INSTANCE_PATH": str(tmp_path), "DATABASE_URL": url})
    assert f"Set SECRET_KEY_FILE={tmp_path}/secret_key to keep the key" in str(refused.value)


@pytest.mark.one_database("sqlite")
def test_a_missing_sqlite_folder_is_reported_in_a_sentence(settings: Settings) -> None:
    away = replace(settings, database_url="sqlite:////nonexistent/folder/gatebell.db")
    with pytest.raises(CannotStartError) as refused:
        check_database_if_available(away)
    assert str(refused.value) == (
        "DATABASE_URL: the database cannot be used: /nonexistent/folder/gatebell.db: "
        "No such file or directory"
    )


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_newer_compatible_schema_is_accepted_with_a_warning(
    settings: Settings, make_app: Callable[[Settings], Flask], caplog: pytest.LogCaptureFixture
) -> None:
    execute_statements(
        settings,
        "CREATE TABLE of_tomorrow (id INTEGER PRIMARY KEY)",
        "ALTER TABLE users ADD COLUMN of_tomorrow INTEGER",
        "UPDATE alembic_version SET version_num = '9999'",
    )
    migrate_to_newest(settings)
    check_database_if_available(settings)
    assert "Database was migrated by a newer release to revision 9999" in caplog.text
    client = make_app(settings).test_client()
    assert client.get("/readyz").json == {"status": "ok", "database": "ok"}


@pytest.mark.one_database("postgres")
def test_a_newer_incompatible_schema_is_rejected_with_a_sentence(
    live: LiveGatebell, settings: Settings, run_here: RunHere
) -> None:
    execute_statements(
        settings,
        "UPDATE alembic_version SET version_num = '9999'",
        "UPDATE schema_support SET oldest_revision = '9998'",
    )
    # The web server and the worker run this check; the tests of a wrong key show that they call it.
    with pytest.raises(CannotStartError, match="a newer release has migrated the database to 9999"):
        check_database_if_available(settings)
    done = run_here(live, "make run")
    assert done.returncode != 0
    assert "a newer release has migrated the database to 9999" in done.stderr
    assert "migration 9998" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_readiness_fails_after_an_incompatible_migration_of_a_newer_release(
    app: Flask, settings: Settings
) -> None:
    client = app.test_client()
    assert client.get("/readyz").status_code == 200
    execute_statements(settings, "UPDATE alembic_version SET version_num = '9999'")
    assert client.get("/readyz").status_code == 200
    execute_statements(settings, "UPDATE schema_support SET oldest_revision = '9998'")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json) == (
        503,
        {"status": "unavailable", "database": "too new"},
    )


@pytest.mark.long
def test_make_migrate_does_not_change_a_newer_schema(
    settings: Settings, live: LiveGatebell, run_here: RunHere
) -> None:
    execute_statements(settings, "UPDATE alembic_version SET version_num = '9999'")
    migrate_to_newest(settings)
    execute_statements(settings, "UPDATE schema_support SET oldest_revision = '9998'")
    with pytest.raises(IncompatibleSchemaError):
        migrate_to_newest(settings)
    done = run_here(live, "make migrate")
    assert done.returncode == 1
    assert "a newer release has migrated" in done.stderr


@pytest.mark.long
def test_a_schema_older_than_release_0_1_0_is_rejected_with_a_remedy(
    app: Flask, settings: Settings, live: LiveGatebell, run_here: RunHere
) -> None:
    execute_statements(settings, "UPDATE alembic_version SET version_num = '0042'")
    with pytest.raises(CannotStartError, match="at migration 0042, but this release only upgrades"):
        check_database_if_available(settings)
    for program in ("make run", "make migrate"):
        done = run_here(live, program)
        assert done.returncode != 0
        assert "Upgrade with release 0.1.0 first, then with this release." in done.stderr
        assert "Traceback" not in done.stderr
    answer = app.test_client().get("/readyz")
    assert answer.json == {"status": "unavailable", "database": "too old"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_missing_migration_is_reported_if_migrate_on_start_is_off(
    tmp_path: Path,
    settings: Settings,
    make_app: Callable[[Settings], Flask],
    run_here: RunHere,
) -> None:
    empty = replace(settings, database_url=f"sqlite:///{tmp_path}/empty.db")
    live = LiveGatebell(
        instance_path=tmp_path, database_url=empty.database_url, MIGRATE_ON_START="false"
    )
    done = run_here(live, "make run")
    assert done.returncode == 2
    assert done.stderr.startswith("DATABASE_URL: the database has an older schema")
    assert "`make migrate`" in done.stderr
    assert done.stderr.count("\n") == 1
    assert make_app(empty).test_client().get("/readyz").json == {
        "status": "unavailable",
        "database": "not migrated",
    }
