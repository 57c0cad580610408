"""Startup checks for the database: its sessions, its schema and the secret key."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from domain.core.clock import read_system_clock
from domain.core.keyring import Keyring
from domain.core.secret_keys import WrongSecretKeyError, check_and_record_key_use
from web.database.engine import open_engine, uses_transaction_pooler
from web.database.errors import list_database_errors
from web.database.migration_locks import MigrationBlockedError
from web.database.schema import (
    IncompatibleSchemaError,
    SchemaState,
    check_schema_compatible,
    get_schema_state,
)
from web.database.sessions import Pooler, SharedConnectionsError, find_pooler, find_session_problem
from web.database.startup_errors import CannotStartError, DatabaseUnavailableError
from web.logging import mask_secrets
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.start")
_NOT_MIGRATED_MESSAGE = (
    "DATABASE_URL: the database has an older schema than this release needs. Run `make migrate` "
)
_MIGRATION_OFF_HINT = "(MIGRATE_ON_START is off)."
_POOLER_HINT = "with an address of Postgres itself, because a pooler shares connections."
#: Errors with a message that can be shown to users.
_EXPLAINED_ERRORS = (
    *(IncompatibleSchemaError, MigrationBlockedError),
    *(SharedConnectionsError, WrongSecretKeyError),
)


@contextmanager
def convert_database_errors() -> Iterator[None]:
    """Convert database errors to CannotStartError."""
    try:
        yield
    except _EXPLAINED_ERRORS as error:
        raise CannotStartError(str(error)) from error
    except OSError as error:  # SQLite could not use its database file.
        place = f"{error.filename}: " if error.filename else ""
        message = f"DATABASE_URL: the database cannot be used: {place}{error.strerror}"
        raise CannotStartError(message) from error
    except list_database_errors() as error:
        reason = mask_secrets(str(error).strip().partition("\n")[0])
        message = f"DATABASE_URL: the database cannot be used: {reason}"
        raise DatabaseUnavailableError(message) from error


def check_schema(settings: Settings) -> None:
    """Check that this code can use the schema of the database.

    Raise CannotStartError for an incompatible schema.
    """
    with (
        convert_database_errors(),
        _use_new_engine(settings) as engine,
        engine.connect() as connection,
    ):
        shape = get_schema_state(connection)
        check_schema_compatible(shape, connection)
    if shape is SchemaState.OLDER:
        raise CannotStartError(_format_not_migrated_message(settings))


def should_migrate(settings: Settings) -> bool:
    """Return whether to migrate the database at startup.

    Behind a transaction pooler, the database is not migrated, because a migration needs its own
    session.
    """
    with convert_database_errors():
        return settings.migrate_on_start and find_pooler(settings) is not Pooler.OF_TRANSACTIONS


def check_sessions(settings: Settings) -> None:
    """Check that the sessions of Postgres or a pooler are usable.

    Raise CannotStartError for unusable sessions.
    """
    with convert_database_errors():
        problem = find_session_problem(settings, find_pooler(settings))
    if problem:
        raise CannotStartError(problem)


def register_secret_key(settings: Settings) -> None:
    """Record that this process uses the secret key.

    Raise CannotStartError for a wrong key.
    """
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    with (
        convert_database_errors(),
        _use_new_engine(settings) as engine,
        Session(engine) as session,
        session.begin(),
    ):
        check_and_record_key_use(keyring, session=session, now=read_system_clock())


def check_database_if_available(settings: Settings) -> None:
    """Run the checks for processes that can wait for an unavailable or unmigrated database.

    Raise CannotStartError for problems that waiting does not resolve.
    """
    try:
        check_sessions(settings)
        with (
            convert_database_errors(),
            _use_new_engine(settings) as engine,
            engine.connect() as connection,
        ):
            shape = get_schema_state(connection)
            check_schema_compatible(shape, connection)
        if shape is SchemaState.OLDER:
            _log.warning(
                _format_not_migrated_message(settings), extra={"event": "start.schema_outdated"}
            )
        else:
            register_secret_key(settings)
    except DatabaseUnavailableError as error:
        _log.warning(str(error), extra={"event": "start.database_unavailable"})


@contextmanager
def _use_new_engine(settings: Settings) -> Iterator[Engine]:
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        engine.dispose()


def _format_not_migrated_message(settings: Settings) -> str:
    return _NOT_MIGRATED_MESSAGE + (
        _POOLER_HINT if uses_transaction_pooler(settings) else _MIGRATION_OFF_HINT
    )
