"""Restores a SQLite database: checked beside the present one, and put in its place at the end."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import make_url

from domain.clock import system_clock
from domain.errors import InvalidError
from domain.keyring import Keyring
from web.commands.backups.contents import faults_of_contents, forget_hosts
from web.commands.backups.manifest import Contents
from web.commands.backups.sqlite_copies import (
    COMPANIONS,
    changing,
    copy_database,
    faults_of_pages,
    opened,
)
from web.settings.reader import Settings


def has_tables(settings: Settings) -> bool:
    """Return whether there is a database with something in it."""
    file = _file(settings)
    if not file.exists():
        return False
    with closing(sqlite3.connect(file)) as connection:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def restore(settings: Settings, source: Path, expected: Contents, keyring: Keyring) -> Path | None:
    """Put a copy in the place of the database; return where the former one is kept, if any.

    Raises InvalidError, and leaves the present one alone, if the copy is not what was backed up.
    """
    place = _file(settings)
    copy = place.with_name(f"{place.name}.restoring")
    copy.unlink(missing_ok=True)
    copy_database(source, copy)
    with opened(copy) as connection:
        faults = [*faults_of_pages(connection), *faults_of_contents(connection, expected, keyring)]
    if faults:
        copy.unlink()
        message = f"Nothing was restored: the copy differs. {' '.join(faults[:5])}"
        raise InvalidError(message)
    with changing(copy) as connection:
        forget_hosts(connection)
    former = _put_aside(place)
    copy.rename(place)
    return former


def _put_aside(place: Path) -> Path | None:
    """Move the present database and what SQLite keeps beside it to another name."""
    if not place.exists():
        return None
    former = place.with_name(f"{place.name}.before-restore-{system_clock():%Y%m%dT%H%M%SZ}")
    for suffix in ("", *COMPANIONS):
        each = Path(f"{place}{suffix}")
        if each.exists():
            each.replace(f"{former}{suffix}")
    return former


def _file(settings: Settings) -> Path:
    return Path(str(make_url(settings.database_url).database))
