"""Dumps and restores a Postgres database with the operator's pg_dump and pg_restore."""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import make_url

from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from web.commands.backups.manifest import (
    DatabaseContents,
    delete_host_reports,
    find_content_faults,
    list_tables,
)
from web.database.engine import build_psycopg_url, open_engine
from web.database.sessions import SharedConnectionsError, open_unlimited_engine
from web.logging import mask_secrets
from web.settings.environment import Settings

DUMP_FILE = "gatebell.dump"
#: Query that returns statements to drop the tables, sequences and functions of the schema, in this
#: order. Functions of extensions are kept.
_DROP_STATEMENTS_QUERY = """
SELECT format('DROP %s IF EXISTS public.%s CASCADE', kind, name) FROM (
  SELECT 1 AS place, 'TABLE' AS kind, quote_ident(tablename) AS name
    FROM pg_tables WHERE schemaname = 'public'
  UNION ALL SELECT 2, 'SEQUENCE', quote_ident(sequencename)
    FROM pg_sequences WHERE schemaname = 'public'
  UNION ALL SELECT 3, 'FUNCTION',
    quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')'
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
) found ORDER BY place, name
"""


@contextmanager
def open_snapshot(settings: Settings) -> Iterator[tuple[Connection, str]]:
    """Open a transaction with a snapshot, and yield the snapshot's name for other connections."""
    engine = _open_database(settings)
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            name = connection.scalar(text("SELECT pg_export_snapshot()"))
            yield connection, str(name)
    finally:
        engine.dispose()


def _open_database(settings: Settings) -> Engine:
    """Open the database for a long transaction.

    Raise InvalidError if DATABASE_URL refers to a transaction pooler, because pg_dump and
    pg_restore would change the sessions of other clients.
    """
    try:
        return open_unlimited_engine(settings)
    except SharedConnectionsError as error:
        raise InvalidError(str(error)) from error


def write_dump(settings: Settings, target: Path, *, snapshot_name: str, program: str) -> None:
    """Write a dump of the database as of a snapshot.

    Raise InvalidError with the message of pg_dump if it fails.
    """
    options = (
        f"--snapshot={snapshot_name}",
        "--format=custom",
        "--schema=public",
        f"--file={target}",
    )
    _run_program(program, options, settings)


def find_program_version(program: str) -> int | None:
    """Return the major version of a Postgres program, or None if it cannot be run."""
    command = [program, "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+", done.stdout)
    return int(found[0]) if found else None


def check_dump_archive(file: Path, settings: Settings, *, program: str) -> None:
    """Read the table of contents of a dump.

    Raise InvalidError if pg_restore cannot read it.
    """
    _run_program(program, ("--list", str(file)), settings, connects=False)


def drop_all_objects(settings: Settings) -> None:
    """Drop the tables, sequences and functions in the `public` schema, in one transaction."""
    from psycopg import connect, sql  # noqa: PLC0415 - SQLite needs none of it

    with connect(build_psycopg_url(settings)) as connection:
        for (statement,) in connection.execute(_DROP_STATEMENTS_QUERY).fetchall():
            connection.execute(sql.SQL(statement))


def restore_dump(settings: Settings, file: Path, *, program: str) -> None:
    """Restore a dump completely or not at all.

    All objects belong to the role that restores them. Raise InvalidError with the message of
    pg_restore if it fails.
    """
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    # The schema exists in every database, so it is not created.
    _run_program(program, (*options, "--schema=public", str(file)), settings)


def _run_program(
    program: str, options: Sequence[str], settings: Settings, *, connects: bool = True
) -> None:
    """Run a Postgres program, with the password in its environment.

    The password is not among the arguments, because all users on the host can see them. Raise
    InvalidError if the program fails.
    """
    url = make_url(build_psycopg_url(settings))
    environment = dict(os.environ)  # noqa: TID251 - the program needs PATH and its own variables
    if url.password:
        environment["PGPASSWORD"] = str(url.password)
    public = url.set(password=None).render_as_string(hide_password=False)
    where = (f"--dbname={public}",) if connects else ()
    try:
        done = subprocess.run(  # noqa: S603 - a program that the operator names
            [program, *where, *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        message = (
            f"{program} cannot be run: {error.strerror}. Install the client programs of Postgres, "
            "such as Debian's package postgresql-client."
        )
        raise InvalidError(message) from error
    if done.returncode:
        said = mask_secrets(" ".join(done.stderr.split()))[:1_000]
        raise InvalidError(f"{Path(program).name} failed: {said}")


def has_tables(settings: Settings) -> bool:
    """Return whether the configured database contains any tables."""
    engine = open_engine(settings)
    try:
        with engine.connect() as connection:
            return bool(list_tables(connection))
    finally:
        engine.dispose()


def restore_postgres_dump(
    settings: Settings,
    file: Path,
    expected_contents: DatabaseContents,
    keyring: Keyring,
    *,
    program: str,
) -> None:
    """Replace the contents of the current database with a dump.

    The current data is dropped only after the dump has been read successfully. Raise InvalidError
    if the result differs from the backup.
    """
    check_dump_archive(file, settings, program=program)
    engine = _open_database(settings)
    drop_all_objects(settings)
    restore_dump(settings, file, program=program)
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        faults = list(find_content_faults(connection, expected_contents, keyring))
        connection.rollback()
    with engine.begin() as connection:
        delete_host_reports(connection)
    engine.dispose()
    if faults:
        raise InvalidError(f"The restored database differs from the backup. {' '.join(faults[:5])}")
