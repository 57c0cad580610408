"""Detects a pooler that shares server connections between statements.

The service needs connections of its own for prepared statements and locks.
"""

import psycopg

from web.database.engine import psycopg_url
from web.settings.reader import Settings

_WHO = "SELECT pg_backend_pid()"


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
