"""Copies a SQLite database while it is in use, and replaces the database with a copy."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from domain.core.clock import read_system_clock
from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from web.commands.backups.manifest import DatabaseContents, delete_host_reports, find_content_faults
from web.instance_files import make_private_file
from web.settings.environment import Settings

DATABASE_FILE = "gatebell.db"
_LOCK_TIMEOUT_SECONDS = 60.0
#: Suffixes of files that SQLite keeps next to a database.
COMPANION_SUFFIXES = ("-wal", "-shm", "-journal")


def copy_database(source: Path, target: Path) -> None:
    """Copy a database with SQLite's backup API in one step, so that the copy is consistent.

    Other processes may write to the source during the copy. The copy is a single file.
    """
    make_private_file(target)
    with (
        closing(sqlite3.connect(source, timeout=_LOCK_TIMEOUT_SECONDS)) as original,
        closing(sqlite3.connect(target, timeout=_LOCK_TIMEOUT_SECONDS)) as copy,
    ):
        # With several steps, each write by the service would restart the backup.
        original.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def open_database_copy(file: Path) -> Iterator[Connection]:
    """Open a database copy for reading. No other process may use the copy."""
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool, hide_parameters=True)
    with engine.connect() as connection:
        yield connection
        connection.rollback()
    engine.dispose()


@contextmanager
def _open_copy_for_changes(file: Path) -> Iterator[Connection]:
    """Open a database copy for changes, and commit the changes at the end.

    No other process may use the copy.
    """
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool, hide_parameters=True)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def find_integrity_faults(connection: Connection) -> list[str]:
    """Check all database pages and foreign keys, and return the faults."""
    said = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check")]
    lost = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(1)
    faults = [] if said == ["ok"] else [f"SQLite reports: {each}" for each in said[:20]]
    return [
        *faults,
        *(f"A row of {row[0]} refers to a missing row of {row[2]}." for row in lost),
    ]


def has_tables(settings: Settings) -> bool:
    """Return whether a database with tables exists."""
    file = _get_database_path(settings)
    if not file.exists():
        return False
    with closing(sqlite3.connect(file)) as connection:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def restore_sqlite_copy(
    settings: Settings, source: Path, expected: DatabaseContents, keyring: Keyring
) -> Path | None:
    """Replace the database with a copy and return the new path of the previous database, if any.

    Raise InvalidError, and keep the current database, if the copy differs from the backup.
    """
    place = _get_database_path(settings)
    copy = place.with_name(f"{place.name}.restoring")
    copy.unlink(missing_ok=True)
    copy_database(source, copy)
    with open_database_copy(copy) as connection:
        faults = [
            *find_integrity_faults(connection),
            *find_content_faults(connection, expected, keyring),
        ]
    if faults:
        copy.unlink()
        raise InvalidError(
            "Nothing was restored, because the copy differs from the backup. "
            f"{' '.join(faults[:5])}"
        )
    with _open_copy_for_changes(copy) as connection:
        delete_host_reports(connection)
    former = _move_database_aside(place)
    copy.rename(place)
    return former


def _move_database_aside(place: Path) -> Path | None:
    """Rename the current database and its companion files, and return the new path."""
    if not place.exists():
        return None
    former = build_replaced_file_path(place)
    for suffix in ("", *COMPANION_SUFFIXES):
        each = Path(f"{place}{suffix}")
        if each.exists():
            each.replace(f"{former}{suffix}")
    return former


def build_replaced_file_path(path: Path) -> Path:
    """Return the path to which a restore moves a replaced file."""
    return path.with_name(f"{path.name}.before-restore-{read_system_clock():%Y%m%dT%H%M%SZ}")


def _get_database_path(settings: Settings) -> Path:
    return Path(str(make_url(settings.database_url).database))
