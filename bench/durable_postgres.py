"""A Postgres of the measurements' own, which keeps what it has said yes to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql

from bench.samples import CannotMeasureError
from tests.support.database.postgres import Postgres, own_server

#: All servers with all their connections.
_MOST_CONNECTIONS = 300


@dataclass(frozen=True, kw_only=True)
class RunningPostgres:
    """A server that runs."""

    databases: Postgres
    #: The process that all others of it descend from.
    pid: int


@contextmanager
def durable_postgres() -> Iterator[RunningPostgres]:
    """Start one whose commits are on the disk, for as long as the block takes."""
    with own_server() as server:
        change = f"ALTER SYSTEM SET max_connections = {_MOST_CONNECTIONS}"
        Postgres(server.get_uri()).execute(sql.SQL(change).format())
        server.stop()
        server.ensure_postgres_running()
        pid = server.get_pid()
        if pid is None:
            raise CannotMeasureError("Postgres does not run")
        yield RunningPostgres(databases=Postgres(server.get_uri()), pid=pid)
