"""Checks whether the database accepts writes.

A full disk, a lock or a standby server prevents writes.
"""

from datetime import datetime
from time import monotonic

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_session_insert
from models import JobTurn
from web.database.sqlite import DeadlineSqliteConnection

#: Seconds for which results are cached, because anyone may request the health check.
_CACHE_SECONDS = 1.0
#: Seconds for which the probe waits for other SQLite writers.
_WRITER_TIMEOUT_SECONDS = 1.5
#: Name of the row that the probe writes.
_ROW_NAME = "write probe"
#: Problems by error code, which is the primary result code for SQLite.
_PROBLEMS_BY_CODE: dict[int | str | None, str] = {
    5: "locked",
    6: "locked",
    8: "read-only",
    13: "disk full",
    "25006": "read-only",
    "53100": "disk full",
}


class WriteProbe:
    """A probe that writes a row, at most once a second, and caches the result."""

    def __init__(self) -> None:
        """Start without a cached result."""
        self._asked_at = float("-inf")
        self._write_problem: str | None = None

    def find_problem(self, engine: Engine, *, now: datetime) -> str | None:
        """Return a short reason why the database rejects writes, or None if it accepts writes."""
        if monotonic() - self._asked_at > _CACHE_SECONDS:
            self._write_problem = self._write_row(engine, now)
            self._asked_at = monotonic()
        return self._write_problem

    def _write_row(self, engine: Engine, now: datetime) -> str | None:
        try:
            with engine.execution_options(begin_mode="IMMEDIATE").connect() as connection:
                _write_with_timeout(connection, now)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return _PROBLEMS_BY_CODE.get(_get_error_code(error), "not writable")
        return None


def _write_with_timeout(connection: Connection, now: datetime) -> None:
    raw = connection.connection.driver_connection
    if not isinstance(raw, DeadlineSqliteConnection):
        _write_row(connection, now)
        return
    usual = raw.patience
    raw.patience = min(_WRITER_TIMEOUT_SECONDS, usual)
    try:
        _write_row(connection, now)
    finally:
        raw.patience = usual


def _write_row(connection: Connection, now: datetime) -> None:
    with Session(connection) as session, session.begin():
        statement = build_session_insert(JobTurn, session=session).values(
            name=_ROW_NAME, taken_at=now
        )
        session.execute(
            statement.on_conflict_do_update(
                index_elements=[JobTurn.name], set_={"taken_at": statement.excluded.taken_at}
            )
        )


def _get_error_code(error: DBAPIError) -> int | str | None:
    number = getattr(error.orig, "sqlite_errorcode", None)
    return getattr(error.orig, "sqlstate", None) if number is None else number & 0xFF
