"""Restores a Postgres database, and checks it."""

from dataclasses import replace
from pathlib import Path

from domain.errors import InvalidError
from domain.keyring import Keyring
from web.commands.backups import postgres_dumps
from web.commands.backups.contents import faults_of_contents, forget_hosts, table_names
from web.commands.backups.manifest import Contents
from web.database.engine import open_engine
from web.settings.reader import Settings


def has_tables(settings: Settings) -> bool:
    """Return whether there is something in the database."""
    engine = open_engine(settings)
    try:
        with engine.connect() as connection:
            return bool(table_names(connection))
    finally:
        engine.dispose()


def restore(
    settings: Settings, file: Path, expected: Contents, keyring: Keyring, *, program: str
) -> None:
    """Restore a dump in the place of what is there; raise InvalidError if it is not as backed up.

    What is there is dropped once the dump could be read.
    """
    postgres_dumps.check_archive(file, settings, program=program)
    postgres_dumps.drop_everything(settings)
    postgres_dumps.restore_dump(settings, file, program=program)
    engine = open_engine(replace(settings, database_statement_timeout_ms=0))
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        faults = list(faults_of_contents(connection, expected, keyring))
        connection.rollback()
    with engine.begin() as connection:
        forget_hosts(connection)
    engine.dispose()
    if faults:
        message = f"What was restored differs from the backup. {' '.join(faults[:5])}"
        raise InvalidError(message)
