"""Startup checks of the database: its sessions, its schema and the secret key."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import system_clock
from domain.core.keyring import Keyring
from domain.core.secret_keys import WrongSecretKeyError, register_use
from web.database.engine import open_engine, pools_transactions
from web.database.migration_locks import MigrationBlockedError
from web.database.schema import (
    IncompatibleSchemaError,
    SchemaState,
    refuse_incompatible,
    schema_state,
)
from web.database.sessions import Pooler, SharedConnectionsError, find_pooler, session_problem
from web.database.start_errors import CannotStartError, DatabaseUnavailableError
from web.logging import without_secrets
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.start")
_NOT_MIGRATED = (
    "DATABASE_URL: the database has an older schema than this release needs. Run `make migrate` "
)
_WHEN_OFF = "(MIGRATE_ON_START is off)."
_WHEN_POOLED = "with an address of Postgres itself, because a pooler shares connections."
#: Errors whose text is a sentence for users.
_REASONS = (
    *(IncompatibleSchemaError, MigrationBlockedError),
    *(SharedConnectionsError, WrongSecretKeyError),
)


@contextmanager
def reasons_in_a_sentence() -> Iterator[None]:
    """Convert database errors to CannotStartError."""
    try:
        yield
    except _REASONS as error:
        raise CannotStartError(str(error)) from error
    except OSError as error:  # an error of SQLite's file
        place = f"{error.filename}: " if error.filename else ""
        message = f"DATABASE_URL: the database cannot be used: {place}{error.strerror}"
        raise CannotStartError(message) from error
    except (SQLAlchemyError, psycopg.Error) as error:
        reason = without_secrets(str(error).strip().partition("\n")[0])
        message = f"DATABASE_URL: the database cannot be used: {reason}"
        raise DatabaseUnavailableError(message) from error


def require_schema(settings: Settings) -> None:
    """Raise CannotStartError unless this code can use the schema of the database."""
    with reasons_in_a_sentence(), _opened(settings) as engine, engine.connect() as connection:
        shape = schema_state(connection)
        refuse_incompatible(shape, connection)
    if shape is SchemaState.OLDER:
        raise CannotStartError(_not_migrated(settings))


def may_migrate(settings: Settings) -> bool:
    """Return whether the database should be migrated at the start, which needs its own session."""
    with reasons_in_a_sentence():
        return settings.migrate_on_start and find_pooler(settings) is not Pooler.OF_TRANSACTIONS


def require_sessions(settings: Settings) -> None:
    """Raise CannotStartError unless the sessions of Postgres or a pooler meet our requirements."""
    with reasons_in_a_sentence():
        problem = session_problem(settings, find_pooler(settings))
    if problem:
        raise CannotStartError(problem)


def register_secret_key(settings: Settings) -> None:
    """Register the secret key.

    Raise CannotStartError if it is the wrong key.
    """
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    with (
        reasons_in_a_sentence(),
        _opened(settings) as engine,
        Session(engine) as session,
        session.begin(),
    ):
        register_use(keyring, session=session, now=system_clock())


def check_if_available(settings: Settings) -> None:
    """Run the checks of programs that can wait for an unavailable or unmigrated database.

    Raise CannotStartError for problems that waiting does not resolve.
    """
    try:
        require_sessions(settings)
        with reasons_in_a_sentence(), _opened(settings) as engine, engine.connect() as connection:
            shape = schema_state(connection)
            refuse_incompatible(shape, connection)
        if shape is SchemaState.OLDER:
            _log.warning(_not_migrated(settings), extra={"event": "start.schema_outdated"})
        else:
            register_secret_key(settings)
    except DatabaseUnavailableError as error:
        _log.warning(str(error), extra={"event": "start.database_unavailable"})


@contextmanager
def _opened(settings: Settings) -> Iterator[Engine]:
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        engine.dispose()


def _not_migrated(settings: Settings) -> str:
    return _NOT_MIGRATED + (_WHEN_POOLED if pools_transactions(settings) else _WHEN_OFF)
