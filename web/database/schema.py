"""Checks the version of the database schema, and migrates to the required version.

Alembic is imported only if there is something to migrate, so that other processes start faster.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, inspect, select, text

from models import SchemaSupport
from web.database.engine import uses_transaction_pooler
from web.database.migration_locks import hold_migration_lock, run_with_lock_retries
from web.database.sessions import open_unlimited_engine, set_session_defaults
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.database")
#: Release with the tables that the first migration creates. Only this release can upgrade older
#: schemas.
FIRST_RELEASE = "0.1.0"
MIGRATIONS_FOLDER = Path(__file__).parents[2] / "migrations"


class IncompatibleSchemaError(Exception):
    """Error for a schema of another release that this code can neither use nor upgrade."""


class UnknownRevisionError(Exception):
    """Error for a migration that does not exist."""


class SchemaState(Enum):
    """Compatibility of the database's schema with this code."""

    OLDER = "older"
    RIGHT = "right"
    #: State after a compatible migration by a newer release.
    NEWER = "newer"
    #: State after an incompatible migration by a newer release.
    TOO_NEW = "too new"
    #: State of a schema that is too old for this release to upgrade.
    TOO_OLD = "too old"


def migrate_to_newest(settings: Settings) -> None:
    """Migrate the database to the newest schema.

    Concurrent calls wait for the first call. A newer schema is not changed. Behind a transaction
    pooler, the defaults of the role are also set.

    Raise IncompatibleSchemaError if this code cannot use the schema. Raise SharedConnectionsError
    if the connection uses a transaction pooler.
    """
    with _open_locked_engine(settings) as engine:
        if uses_transaction_pooler(settings):
            with engine.begin() as connection:
                set_session_defaults(connection, settings)
        with engine.connect() as connection:
            shape = get_schema_state(connection)
            check_schema_compatible(shape, connection)
            if shape is SchemaState.NEWER:
                _log.warning(
                    "Database was migrated by a newer release to revision %s. This release "
                    "supports this schema, but its own newest revision is %s.",
                    _find_revision(connection),
                    get_newest_known_revision(),
                    extra={"event": "schema.newer"},
                )
        if shape is SchemaState.OLDER:
            run_with_lock_retries(
                engine,
                partial(_run_migrations, revision=get_newest_known_revision()),
                _find_revision,
            )


def migrate_to_revision(settings: Settings, revision: str) -> None:
    """Migrate the database to an earlier or later revision that this code contains.

    Migrating to an earlier revision removes the data that later migrations added. Raise
    UnknownRevisionError for an unknown revision.
    """
    if not is_known_revision(revision):
        raise UnknownRevisionError(
            f"{revision} is not a migration. The newest migration is {get_newest_known_revision()}."
        )
    with _open_locked_engine(settings) as engine:
        with engine.connect() as connection:
            check_schema_compatible(get_schema_state(connection), connection)
        run_with_lock_retries(engine, partial(_run_migrations, revision=revision), _find_revision)


@contextmanager
def _open_locked_engine(settings: Settings) -> Iterator[Engine]:
    """Open the database and hold the migration lock."""
    # Migrations, and waiting for the lock, may take longer than a request.
    engine = open_unlimited_engine(settings)
    try:
        with hold_migration_lock(settings, engine):
            yield engine
    finally:
        engine.dispose()


def _run_migrations(connection: Connection, *, revision: str) -> None:
    from alembic import command  # noqa: PLC0415 - see above

    configuration, current = build_alembic_configuration(connection), _find_revision(connection)
    connection.rollback()  # each migration begins its own transaction
    is_back = current is not None and revision < current
    (command.downgrade if is_back else command.upgrade)(configuration, revision)


def build_alembic_configuration(connection: Connection) -> Any:
    """Return Alembic's configuration for migrations on a connection."""
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    config.attributes["connection"] = connection
    return config


def get_schema_state(connection: Connection) -> SchemaState:
    """Return the state of the database's schema.

    During a rolling update or after a rollback, older code uses a newer schema. Most migrations
    only add columns and tables. Any other migration records the oldest code that it supports.
    """
    current = _find_revision(connection)
    if current == get_newest_known_revision():
        return SchemaState.RIGHT
    if current is None or is_known_revision(current):
        return SchemaState.OLDER
    if is_before_known_revisions(current):
        return SchemaState.TOO_OLD
    supported = _find_oldest_supported_revision(connection)
    is_supported = supported is not None and supported <= get_newest_known_revision()
    return SchemaState.NEWER if is_supported else SchemaState.TOO_NEW


def check_schema_compatible(shape: SchemaState, connection: Connection) -> None:
    """Check that this code can use the schema.

    Raise IncompatibleSchemaError for an incompatible schema.
    """
    if shape is SchemaState.TOO_NEW:
        found, oldest = _find_revision(connection), _find_oldest_supported_revision(connection)
        raise IncompatibleSchemaError(
            f"DATABASE_URL: a newer release has migrated the database to {found}. This requires a "
            f"release with migration {oldest}, but the newest migration of this release is "
            f"{get_newest_known_revision()}. Start a newer release."
        )
    if shape is SchemaState.TOO_OLD:
        raise IncompatibleSchemaError(
            f"DATABASE_URL: the database is at migration {_find_revision(connection)}, but this "
            "release "
            f"only upgrades from migration {min(_list_known_revisions())} (release "
            f"{FIRST_RELEASE}). "
            f"Upgrade with release {FIRST_RELEASE} first, then with this release."
        )


def _find_revision(connection: Connection) -> str | None:
    """Return the current Alembic revision, or None if the database is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    noted: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return noted


def _find_oldest_supported_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(SchemaSupport.__tablename__):
        return None
    return connection.scalar(select(func.max(SchemaSupport.oldest_revision)))


@cache
def _list_known_revisions() -> frozenset[str]:
    """Return the revisions in the file names of migrations.

    Tests compare these revisions with Alembic's revisions.
    """
    files = (MIGRATIONS_FOLDER / "versions").glob("[0-9]*.py")
    return frozenset(file.name.partition("_")[0] for file in files)


def is_known_revision(revision: str) -> bool:
    """Return whether this code contains the migration with the given revision."""
    return revision in _list_known_revisions()


def is_before_known_revisions(revision: str) -> bool:
    """Return whether a migration is older than all migrations in this code."""
    return revision < min(_list_known_revisions())


@cache
def get_newest_known_revision() -> str:
    """Return the newest migration in this code."""
    return max(_list_known_revisions())
