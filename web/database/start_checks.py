"""Start-up checks of the database: its schema and the secret key."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.clock import system_clock
from domain.keyring import Keyring
from domain.secret_keys import WrongSecretKeyError, register_use
from web.database.engine import open_engine, psycopg_url
from web.database.migration_locks import MigrationBlockedError
from web.database.schema import (
    IncompatibleSchemaError,
    SchemaState,
    refuse_incompatible,
    schema_state,
)
from web.logging import without_secrets
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.start")
_NOT_MIGRATED = (
    "DATABASE_URL: the database has an older schema than this release needs. Run `make migrate` "
    "(MIGRATE_ON_START is off)."
)
_POOLED = (
    "DATABASE_URL: a pooler shares connections between transactions, which loses prepared "
    "statements and locks. Let it pool sessions (pgbouncer: pool_mode=session)."
)
#: Errors whose text is a sentence for people.
_REASONS = (*(IncompatibleSchemaError, MigrationBlockedError, WrongSecretKeyError),)
_WHO = "SELECT pg_backend_pid()"


class CannotStartError(Exception):
    """The service cannot start for an external reason; the text is one sentence."""


class DatabaseUnavailableError(CannotStartError):
    """The database is unavailable."""


@contextmanager
def reasons_in_a_sentence() -> Iterator[None]:
    """Turn errors of the database into CannotStartError."""
    try:
        yield
    except _REASONS as error:
        raise CannotStartError(str(error)) from error
    except (SQLAlchemyError, psycopg.Error) as error:
        reason = without_secrets(str(error).strip().partition("\n")[0])
        message = f"DATABASE_URL: the database cannot be used: {reason}"
        raise DatabaseUnavailableError(message) from error


def require_schema(settings: Settings) -> None:
    """Raise CannotStartError unless the database has a schema that this code can use."""
    with reasons_in_a_sentence(), _opened(settings) as engine, engine.connect() as connection:
        shape = schema_state(connection)
        refuse_incompatible(shape, connection)
    if shape is SchemaState.OLDER:
        raise CannotStartError(_NOT_MIGRATED)


def require_own_connections(settings: Settings) -> None:
    """Raise CannotStartError if a pooler shares server connections between statements."""
    with reasons_in_a_sentence():
        are_shared = connections_are_shared(settings)
    if are_shared:
        raise CannotStartError(_POOLED)


def register_secret_key(settings: Settings) -> None:
    """Register the secret key; raise CannotStartError if it is the wrong one."""
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    with (
        reasons_in_a_sentence(),
        _opened(settings) as engine,
        Session(engine) as session,
        session.begin(),
    ):
        register_use(keyring, session=session, now=system_clock())


def check_if_available(settings: Settings) -> None:
    """Run the checks for programs that can wait for an unavailable or unmigrated database.

    Raises CannotStartError for what does not resolve by waiting.
    """
    try:
        with reasons_in_a_sentence(), _opened(settings) as engine, engine.connect() as connection:
            shape = schema_state(connection)
            refuse_incompatible(shape, connection)
        if shape is SchemaState.OLDER:
            _log.warning(_NOT_MIGRATED)
        else:
            require_own_connections(settings)
            register_secret_key(settings)
    except DatabaseUnavailableError as error:
        _log.warning(str(error))


@contextmanager
def _opened(settings: Settings) -> Iterator[Engine]:
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        engine.dispose()


def connections_are_shared(settings: Settings) -> bool:
    """Return whether two connections share a server process, or one changes it."""
    if settings.uses_sqlite:
        return False
    url, timeout = psycopg_url(settings), settings.database_connect_timeout_seconds
    with (
        psycopg.connect(url, autocommit=True, connect_timeout=timeout) as one,
        psycopg.connect(url, autocommit=True, connect_timeout=timeout) as other,
    ):
        return _meet(one, other)


def _meet(one: psycopg.Connection, other: psycopg.Connection) -> bool:
    first = _backend(one)
    with other.transaction():  # keeps its server connection
        return _backend(other) == first or _backend(one) != first


def _backend(connection: psycopg.Connection) -> object:
    return connection.execute(_WHO).fetchone()
