"""Tells a database that is away or busy from rows that cannot be read or stored."""

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

#: Classes of SQLSTATE that Postgres's driver calls operational, though a row is to blame: a value
#: exceeds what the program can do (54), such as the longest row of an index.
_OF_ROWS = ("54",)
#: SQLSTATEs of what gave way to another transaction: deadlock_detected, serialization_failure.
_GAVE_WAY = frozenset({"40P01", "40001"})
#: SQLSTATE of a write on a server that takes none: read_only_sql_transaction.
_READ_ONLY = "25006"


def is_lost(error: BaseException) -> bool:
    """Return whether the connection was lost, so that nothing more can be done in it."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def gave_way(error: BaseException) -> bool:
    """Return whether a transaction gave way to another one: it can be done again at once."""
    return isinstance(error, DBAPIError) and _state(error) in _GAVE_WAY


def is_read_only(error: BaseException) -> bool:
    """Return whether the server takes no writes, as after a failover."""
    return isinstance(error, DBAPIError) and _state(error) == _READ_ONLY


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def is_of_database(error: BaseException) -> bool:
    """Return whether the database is away, busy or full: a retry may succeed, whatever the row."""
    if not isinstance(error, InterfaceError | OperationalError):
        return is_lost(error)
    state = _state(error) or ""
    return not state.startswith(_OF_ROWS)
