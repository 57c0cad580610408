"""Tests of a failover between two PostgreSQL servers in DATABASE_URL."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest

from tests.support.alerts.senders import connect
from tests.support.database.postgres import memory_directory
from tests.support.database.standby import PROGRAMS, Server, primary_with_standby, url_of_both
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell, running
from web.database.schema import migrate_to_newest
from web.settings.environment import parse_settings

_PATIENCE_SECONDS = 60


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """Run a primary server and its standby."""
    with primary_with_standby(memory_directory()) as servers:
        yield servers


def await_copy(standby: Server) -> None:
    """Wait until the standby has the stored alert."""
    deadline = monotonic() + _PATIENCE_SECONDS
    with psycopg.connect(standby.url, autocommit=True) as connection:
        while connection.execute("SELECT count(*) FROM alerts").fetchone() != (1,):
            assert monotonic() < deadline
            sleep(0.1)


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_the_service_continues_with_the_promoted_standby(
    pair: tuple[Server, Server], tmp_path: Path
) -> None:
    primary, standby = pair
    live = LiveGatebell(
        instance_path=tmp_path / "live",
        database_url=url_of_both(primary, standby),
        only="web",
        WEB_CONCURRENCY="1",
    )
    live.instance_path.mkdir()
    migrate_to_newest(parse_settings(live.environment))
    with running(live):
        endpoint = connect(live)
        assert endpoint.accepted(title="before")["iid"] == 1
        await_copy(standby)
        primary.control("stop", "-m", "immediate")
        assert endpoint.send(title="between").status_code == 503
        standby.control("promote")
        deadline = monotonic() + _PATIENCE_SECONDS
        while (answer := endpoint.send(title="after")).status_code == 503:
            assert monotonic() < deadline
            sleep(0.1)
        # Numbers that the first server had reserved are skipped.
        assert answer.json()[0]["iid"] > 1
        live.close()  # Closes the test's own connections to the first server.
        assert {each.title for each in list_stored_alerts(live, endpoint.project)} == {
            "before",
            "after",
        }
        # The command fails, because no worker runs.
        checks = json.loads(live.run_cli("doctor").stdout)["checks"]
        states = {each["check"]: each["state"] for each in checks}
        assert (states["database"], states["migrations"]) == ("ok", "ok")
        dump = ("--pg-dump", str(PROGRAMS / "pg_dump"))
        assert live.cli("backup", str(tmp_path / "backup"), *dump)["rows"] > 0
