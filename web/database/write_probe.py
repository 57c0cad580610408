"""Whether the database takes what is written: a full disk, a lock or a standby refuse it."""

from datetime import datetime
from time import monotonic

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from models import JobTurn
from web.database.engine import begin_mode

#: Whoever asks more often than this is told what was found before: anybody may ask.
_FRESH_SECONDS = 1.0
#: How long SQLite waits here for whoever else is writing.
_PATIENCE_MS = 1_500
#: The row that is written for nothing else.
_ROW = "write probe"
#: What the databases' codes mean; SQLite's without what makes them special.
_WORDS: dict[int | str | None, str] = {
    5: "locked",
    6: "locked",
    8: "read-only",
    13: "disk full",
    "25006": "read-only",
    "53100": "disk full",
}


class WriteProbe:
    """Writes a row, at most once a second, and remembers what came of it."""

    def __init__(self, *, patience_ms: int) -> None:
        """Take how long a connection waits for a lock when others use it."""
        self._usual_patience_ms = patience_ms
        self._asked_at = float("-inf")
        self._hindrance: str | None = None

    def hindrance(self, engine: Engine, *, now: datetime) -> str | None:
        """Return in a word what keeps anybody from writing; None if nothing does."""
        if monotonic() - self._asked_at > _FRESH_SECONDS:
            self._hindrance = self._ask(engine, now)
            self._asked_at = monotonic()
        return self._hindrance

    def _ask(self, engine: Engine, now: datetime) -> str | None:
        mode = begin_mode.set("IMMEDIATE")
        try:
            with engine.connect() as connection:
                self._write(connection, now)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return _WORDS.get(_code(error), "not writable")
        finally:
            begin_mode.reset(mode)
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
