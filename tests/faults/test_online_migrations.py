"""Tests that a PostgreSQL migration under load and with a long reader fails no request."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url

from tests.faults.balancer import Balancer, clients_at_work
from tests.faults.processes import wait_until
from tests.support.accounts.people import settings_of
from tests.support.database.postgres import Postgres
from tests.support.service.live import ROOT, SECRET_KEY, LiveGatebell, NewService
from web.database import migration_locks
from web.database.engine import open_engine
from web.database.migration_locks import MigrationBlockedError, run_with_lock_retries
from web.database.schema import get_newest_known_revision
from web.settings.environment import Settings, parse_settings

pytestmark = pytest.mark.one_database("postgres")

_PACKAGES = ("domain", "migrations", "models", "web")
#: Possible steps of a later release, on tables that every client uses.
_STEPS = (
    """
    for table in ("alerts", "deliveries", "access_tokens", "users"):
        op.add_column(table, sa.Column("of_tomorrow", sa.Integer()))
""",
    """
    create_index("ix_of_tomorrow", "alerts", ["project_id", "of_tomorrow"])
""",
    """
    for table in ("alerts", "users"):
        update_in_batches(table, "of_tomorrow = id", where="of_tomorrow IS NULL")
""",
)
_MIGRATION = '''"""What a later release may do."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index, update_in_batches

revision, down_revision = "{revision}", "{former}"
branch_labels = depends_on = None


def upgrade() -> None:{step}
'''
#: Number of seconds, more than the statement timeout (DATABASE_STATEMENT_TIMEOUT_MS).
_READS_FOR_SECONDS = 16
#: Age in seconds at which a transaction causes a warning.
_LONG_SECONDS = 5.5


@pytest.fixture
def tomorrow(tmp_path: Path) -> Path:
    """Copy the code as a release with additional migrations."""
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / "tomorrow" / name)
    former = get_newest_known_revision()
    for number, step in enumerate(_STEPS, start=9001):
        file = tmp_path / "tomorrow" / "migrations" / "versions" / f"{number}_tomorrow.py"
        file.write_text(_MIGRATION.format(revision=number, former=former, step=step))
        former = str(number)
    return tmp_path / "tomorrow"


@contextmanager
def long_reader(live: LiveGatebell) -> Iterator["psycopg.Connection[Any]"]:
    """Read for the duration of the block, as a backup does."""
    url = make_url(live.database_url).set(drivername="postgresql")
    address = url.render_as_string(hide_password=False)
    with psycopg.connect(address, application_name="pg_dump") as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM alerts, access_tokens")
        yield connection


def migrating(live: LiveGatebell, code: Path, log: Path) -> "subprocess.Popen[str]":
    """Start a migration."""
    command = [sys.executable, "-m", "web.server.migrate"]
    with log.open("w") as file:
        return subprocess.Popen(command, cwd=code, env=live.environment, stderr=file, text=True)


@pytest.mark.long
def test_no_request_fails_and_the_migration_completes_after_the_reader(
    new_postgres: Callable[[], str], tomorrow: Path, tmp_path: Path
) -> None:
    live = LiveGatebell(
        instance_path=tmp_path / "host",
        database_url=new_postgres(),
        only="web",
        WEB_CONCURRENCY="1",
        DATABASE_CONNECT_TIMEOUT_SECONDS="2",
    )
    live.start()
    log, other = tmp_path / "log", tmp_path / "other"
    try:
        with clients_at_work(Balancer([live]), 3, pause=0.05) as record:
            record.wait_for_rounds(6)
            with long_reader(live):
                sleep(_LONG_SECONDS)
                # A host that starts at the same time has to wait for the first one.
                both = [migrating(live, tomorrow, each) for each in (log, other)]
                wait_until(lambda: '"migration.blocked"' in log.read_text() + other.read_text())
                rounds = record.rounds
                sleep(_READS_FOR_SECONDS)
                assert record.rounds > rounds + 6, "requests waited behind the migration"
                assert [each.poll() for each in both] == [None, None], log.read_text()
            assert [each.wait(120) for each in both] == [0, 0], log.read_text()
            record.wait_for_rounds(6)
        assert record.failures == []
    finally:
        live.stop()

    said = log.read_text() + other.read_text()
    assert '"migration.long_transactions_found"' in said
    assert '"migration.blocked"' in said
    assert "(pg_dump, a backup, idle in transaction for " in said
    assert '"migration.already_running"' in said
    with opened(settings_of(live)) as connection:
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'ix_of_tomorrow'::regclass"
        assert connection.scalar(text(valid)) is True
        filled = "SELECT count(*) > 0 AND bool_and(of_tomorrow = id) FROM alerts WHERE id <= :last"
        last = "SELECT max(of_tomorrow) FROM alerts"
        assert connection.scalar(text(filled), {"last": connection.scalar(text(last))}) is True


@contextmanager
def opened(settings: Settings) -> Iterator[Connection]:
    engine = open_engine(settings)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@pytest.mark.long
def test_the_same_steps_give_the_same_result_on_sqlite(
    new_service: NewService, tomorrow: Path, tmp_path: Path
) -> None:
    live = new_service("sqlite", SECRET_KEY=SECRET_KEY)
    for name in ("alice", "bob"):
        live.cli("users", "create", name, "--email", f"{name}@people.example")
    log = tmp_path / "log"
    assert migrating(live, tomorrow, log).wait(120) == 0, log.read_text()
    with opened(settings_of(live)) as connection:
        found = connection.execute(text("SELECT id, of_tomorrow FROM users")).all()
    assert len(found) >= 2
    assert all(of_tomorrow == own for own, of_tomorrow in found)


def test_a_migration_without_locks_reports_who_holds_them(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration_locks, "_BLOCKED_TIMEOUT_SECONDS", 1)
    url = postgres.new_database()
    given = {"INSTANCE_PATH": str(tmp_path), "DATABASE_URL": url, "SECRET_KEY": SECRET_KEY}
    settings = parse_settings(given)

    def change(connection: Connection) -> None:
        with connection.begin():
            connection.execute(text("ALTER TABLE used ADD COLUMN more integer"))

    with opened(settings) as reader:
        reader.execute(text("CREATE TABLE used (id integer)"))
        reader.commit()
        reader.execute(text("SELECT 1 FROM used"))
        engine = open_engine(settings)
        with pytest.raises(MigrationBlockedError) as caught:
            run_with_lock_retries(engine, change, lambda _connection: "0099")
        engine.dispose()
    assert "The migration after 0099 could not lock its tables" in str(caught.value)
    assert "(gatebell, idle in transaction for " in str(caught.value)
