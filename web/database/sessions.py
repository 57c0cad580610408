"""Postgres sessions, and poolers between Postgres and the service.

A transaction pooler may assign a Postgres connection to another client after each transaction.
Parameters that the service would set for its session are then set for its role
(`set_session_defaults`). Migrations and backups need their own session.
"""

from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, event, func, select, text

from web.database.engine import (
    UTC_NAMES,
    build_connection_arguments,
    build_psycopg_url,
    open_engine,
    uses_transaction_pooler,
)
from web.settings.environment import Settings

#: Number of attempts to detect that two connections share a server process. While other clients use
#: the pooler, an attempt may fail to detect this.
_SHARING_ATTEMPTS = 10
_BACKEND_QUERY = "SELECT pg_backend_pid()"
_SESSION_DEFAULTS_QUERY = (
    "SELECT current_user, current_setting('TimeZone'), setting::int FROM pg_settings"
    " WHERE name = 'statement_timeout'"
)
_LZ4_QUERY = (
    "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
)
#: Milliseconds after which Postgres ends the statement of a disconnected client.
_CLIENT_CHECK_INTERVAL_MS = 1_000
_UNDECLARED_POOLER_MESSAGE = (
    "DATABASE_URL: a pooler shares connections between transactions, which loses prepared "
    "statements and locks. Set DATABASE_POOLER=transaction, or configure the pooler to pool "
    "sessions (PgBouncer: pool_mode=session)."
)
_SHARED_CONNECTIONS_MESSAGE = (
    "DATABASE_URL: a pooler shares connections between transactions, but migrations and backups "
    "need their own session. Use an address of Postgres itself for them."
)
_REJECTED_OPTIONS_MESSAGE = (
    "DATABASE_URL: the pooler rejects the startup parameters of sessions. Set "
    "DATABASE_POOLER=transaction (docs/scaling-out.md)."
)
_WRONG_DEFAULTS_MESSAGE = (
    "DATABASE_URL: sessions of {role} start with statement_timeout={timeout} and timezone={zone}, "
    "but need at most {limit} and UTC. Run `make migrate` as {role} with "
    "DATABASE_POOLER=transaction and an address of Postgres itself, which sets both. Then let the "
    "pooler reconnect (PgBouncer: RECONNECT)."
)


class Pooler(Enum):
    """The kind of pooler between the service and Postgres."""

    NONE = "none"
    OF_SESSIONS = "sessions"
    OF_TRANSACTIONS = "transactions"


class SharedConnectionsError(Exception):
    """Error for an operation that needs its own session but uses a transaction pooler."""


def find_pooler(settings: Settings) -> Pooler:
    """Return the kind of pooler to which DATABASE_URL refers.

    Raise psycopg's errors if the connection fails.
    """
    if settings.uses_sqlite:
        return Pooler.NONE
    import psycopg  # noqa: PLC0415 - SQLite needs no psycopg

    connect = partial(
        psycopg.connect,
        build_psycopg_url(settings),
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=settings.database_connect_timeout_seconds,
    )
    with connect() as one:
        # Poolers report their own process IDs to clients.
        if _get_backend_pid(one) == one.info.backend_pid:
            return Pooler.NONE
        with connect() as other:
            are_shared = any(_is_backend_shared(one, other) for _ in range(_SHARING_ATTEMPTS))
    return Pooler.OF_TRANSACTIONS if are_shared else Pooler.OF_SESSIONS


def _is_backend_shared(one: Any, other: Any) -> bool:
    """Return whether the pooler shares its server connections between two client connections."""
    first = _get_backend_pid(one)
    with other.transaction():  # this keeps the server connection of `other`
        return bool(_get_backend_pid(other) == first or _get_backend_pid(one) != first)


def _get_backend_pid(connection: Any) -> Any:
    row = connection.execute(_BACKEND_QUERY).fetchone()
    return row[0] if row else None


def find_session_problem(settings: Settings, pooler: Pooler) -> str | None:
    """Return a message about a session problem and its remedy, or None if there is no problem."""
    if pooler is Pooler.OF_TRANSACTIONS and not uses_transaction_pooler(settings):
        return _UNDECLARED_POOLER_MESSAGE
    if pooler is Pooler.NONE and not uses_transaction_pooler(settings):
        return None  # a session starts with the parameters that the service sets
    import psycopg  # noqa: PLC0415 - SQLite needs no psycopg

    limit = settings.database_statement_timeout_ms
    try:
        with psycopg.connect(
            build_psycopg_url(settings), **build_connection_arguments(settings)
        ) as connection:
            row = connection.execute(_SESSION_DEFAULTS_QUERY).fetchone()
    except psycopg.OperationalError as error:
        if "startup parameter" in str(error):
            return _REJECTED_OPTIONS_MESSAGE
        raise
    role, zone, timeout = row or ("", "", 0)
    if zone in UTC_NAMES and 0 < timeout <= limit:
        return None
    return _WRONG_DEFAULTS_MESSAGE.format(role=role, zone=zone, timeout=timeout, limit=limit)


def set_session_defaults(connection: Connection, settings: Settings) -> None:
    """Set the defaults of the service's sessions for its own database role.

    This requires no special privileges.
    """
    quoted = connection.dialect.identifier_preparer.quote
    database = quoted(connection.scalar(select(func.current_database())) or "")
    changes = [
        f"statement_timeout = {settings.database_statement_timeout_ms}",
        "timezone = 'UTC'",
        f"client_connection_check_interval = {_CLIENT_CHECK_INTERVAL_MS}",
    ]
    if connection.scalar(text(_LZ4_QUERY)):
        changes.append("default_toast_compression = 'lz4'")
    for change in changes:
        connection.exec_driver_sql(f"ALTER ROLE CURRENT_USER IN DATABASE {database} SET {change}")


def open_unlimited_engine(settings: Settings) -> Engine:
    """Open an engine with its own sessions and without a statement timeout.

    Raise SharedConnectionsError behind a transaction pooler.
    """
    if find_pooler(settings) is Pooler.OF_TRANSACTIONS:
        raise SharedConnectionsError(_SHARED_CONNECTIONS_MESSAGE)
    # Session poolers may reject or ignore startup parameters, so the engine sends none.
    plain = replace(settings, database_pooler="transaction", database_statement_timeout_ms=0)
    engine = open_engine(plain)
    if not settings.uses_sqlite:
        event.listen(engine, "connect", _configure_session, insert=True)
    return engine


def _configure_session(connection: Any, _record: Any) -> None:
    with connection.transaction():
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET timezone = 'UTC'")
