"""Distinguishes failures of the database from errors in the data."""

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

#: SQLSTATE classes of errors in the data that the Postgres driver reports as operational errors.
#: Class 54 means that a program limit was exceeded, such as the size of an index row.
_DATA_ERROR_CLASSES = ("54",)
#: SQLSTATEs of transactions aborted by a conflict: deadlock_detected, serialization_failure.
_CONFLICT_STATES = frozenset({"40P01", "40001"})
#: SQLSTATE of a write to a read-only server: read_only_sql_transaction.
_READ_ONLY_STATE = "25006"


def is_connection_lost(error: BaseException) -> bool:
    """Return whether the connection was lost and can no longer be used."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_conflict(error: BaseException) -> bool:
    """Return whether a transaction was aborted by a conflict, so that it can be retried."""
    return isinstance(error, DBAPIError) and _get_sqlstate(error) in _CONFLICT_STATES


def is_read_only(error: BaseException) -> bool:
    """Return whether the server rejects writes, as it may after a failover."""
    return isinstance(error, DBAPIError) and _get_sqlstate(error) == _READ_ONLY_STATE


def _get_sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def is_database_failure(error: BaseException) -> bool:
    """Return whether the database is unavailable, busy or full, so that a retry may succeed."""
    if not isinstance(error, InterfaceError | OperationalError):
        return is_connection_lost(error)
    state = _get_sqlstate(error) or ""
    return not state.startswith(_DATA_ERROR_CLASSES)
