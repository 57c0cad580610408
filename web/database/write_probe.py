"""Checks that the database accepts writes: a full disk, a lock or a standby refuse them."""

from datetime import datetime
from time import monotonic

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.database.rows import insert_into
from models import JobTurn

#: Results are cached for so long, because anybody may request the health check.
_FRESH_SECONDS = 1.0
#: How long SQLite waits for another writer.
_PATIENCE_MS = 1_500
#: The row that only the probe writes.
_ROW = "write probe"
#: Problems by error code; for SQLite by primary result code.
_WORDS: dict[int | str | None, str] = {
    5: "locked",
    6: "locked",
    8: "read-only",
    13: "disk full",
    "25006": "read-only",
    "53100": "disk full",
}


class WriteProbe:
    """Writes a row, at most once a second, and caches the result."""

    def __init__(self, *, patience_ms: int) -> None:
        """Take the busy timeout to restore, in milliseconds."""
        self._usual_patience_ms = patience_ms
        self._asked_at = float("-inf")
        self._write_problem: str | None = None

    def problem(self, engine: Engine, *, now: datetime) -> str | None:
        """Return the write problem in a few words, or None."""
        if monotonic() - self._asked_at > _FRESH_SECONDS:
            self._write_problem = self._ask(engine, now)
            self._asked_at = monotonic()
        return self._write_problem

    def _ask(self, engine: Engine, now: datetime) -> str | None:
        try:
            with engine.execution_options(begin_mode="IMMEDIATE").connect() as connection:
                self._write(connection, now)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return _WORDS.get(_code(error), "not writable")
        return None

    def _write(self, connection: Connection, now: datetime) -> None:
        is_sqlite = connection.dialect.name == "sqlite"
        raw = connection.connection.driver_connection
        if is_sqlite and raw is not None:
            raw.execute(f"PRAGMA busy_timeout = {min(_PATIENCE_MS, self._usual_patience_ms)}")
        try:
            with Session(connection) as session, session.begin():
                _write_row(session, now)
        finally:
            if is_sqlite and raw is not None:
                raw.execute(f"PRAGMA busy_timeout = {self._usual_patience_ms}")


def _write_row(session: Session, now: datetime) -> None:
    statement = insert_into(JobTurn, session=session).values(name=_ROW, taken_at=now)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=[JobTurn.name], set_={"taken_at": statement.excluded.taken_at}
        )
    )


def _code(error: DBAPIError) -> int | str | None:
    number = getattr(error.orig, "sqlite_errorcode", None)
    return getattr(error.orig, "sqlstate", None) if number is None else number & 0xFF
