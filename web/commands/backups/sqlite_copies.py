"""Copies of a SQLite database, made while others write to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from web.instance_files import make_private_file

FILE = "gatebell.db"
_PATIENCE_SECONDS = 60.0
#: The files that SQLite keeps beside a database.
COMPANIONS = ("-wal", "-shm", "-journal")


def copy_database(source: Path, target: Path) -> None:
    """Copy a database with SQLite's backup API, in one step and so of one moment.

    The source may be written to meanwhile. The copy is one file.
    """
    make_private_file(target)
    with (
        closing(sqlite3.connect(source, timeout=_PATIENCE_SECONDS)) as original,
        closing(sqlite3.connect(target, timeout=_PATIENCE_SECONDS)) as copy,
    ):
        # In steps, each write of the service would make it begin again.
        original.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def opened(file: Path) -> Iterator[Connection]:
    """Open a copy that nobody else uses, to read it."""
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool, hide_parameters=True)
    with engine.connect() as connection:
        yield connection
        connection.rollback()
    engine.dispose()


@contextmanager
def changing(file: Path) -> Iterator[Connection]:
    """Open a copy that nobody else uses, to change it."""
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool, hide_parameters=True)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def faults_of_pages(connection: Connection) -> list[str]:
    """Check every page and every reference between rows; return what is wrong."""
    said = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check")]
    lost = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(1)
    faults = [] if said == ["ok"] else [f"SQLite finds: {each}" for each in said[:20]]
    return [
        *faults,
        *(f"A row of {row[0]} refers to one of {row[2]} that is not there." for row in lost),
    ]
