"""One kept connection a thread, in autocommit mode: what the hot paths ask the database through."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import local
from typing import Any

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import DBAPIError, IntegrityError

from domain.hot import HotRow, Outcome
from web.hot_statements import CoreStatements, DirectStatements

#: The transaction is gone and may be done again: deadlock_detected, serialization_failure, and
#: invalid_sql_statement_name, when what was prepared was thrown away before it began.
_VICTIM_STATES = frozenset({"40P01", "40001", "26000"})
_MOST_TRIES = 5


class HotDatabase:
    """Keeps one connection a thread, in autocommit mode: see `domain.hot.HotConnection`."""

    def __init__(self, engine: Engine) -> None:
        """Use the engine's pool."""
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT", is_hot=True)
        self._kept = local()
        is_postgres = engine.dialect.name == "postgresql"
        self._statements = DirectStatements(engine) if is_postgres else CoreStatements()

    @property
    def dialect_name(self) -> str:
        """`postgresql` or `sqlite`."""
        return self._engine.dialect.name

    def first(self, statement: Executable, parameters: Mapping[str, Any]) -> HotRow | None:
        """Run a read and return its first row, if there is one; see `look_up`."""
        found = self.look_up(statement, parameters)
        return found[0] if found else None

    def look_up(self, statement: Executable, parameters: Mapping[str, Any]) -> Sequence[HotRow]:
        """Run a read; once more on a new connection if the kept one had gone stale."""
        try:
            return self._statements.run(self._connection(), statement, parameters)
        except DBAPIError as error:
            self._forget_if_broken(error)
            if not error.connection_invalidated:
                raise
            return self.all(statement, parameters)

    def all(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Sequence[HotRow]:
        """Run a statement once: whether a lost one took effect nobody can tell."""
        try:
            return self._statements.run(self._connection(), statement, parameters)
        except DBAPIError as error:
            self._forget_if_broken(error)
            raise

    def transact(self, work: Callable[[], Outcome]) -> Outcome:
        """Do the work between BEGIN and COMMIT; again if it fell victim to a conflict."""
        for _ in range(_MOST_TRIES - 1):
            try:
                return self._attempt(work)
            except DBAPIError as error:
                if not _is_victim(error):
                    raise
        return self._attempt(work)

    def close(self) -> None:
        """Close the connection that this thread keeps."""
        self._forget()

    def _attempt(self, work: Callable[[], Outcome]) -> Outcome:
        begin = "BEGIN IMMEDIATE" if self.dialect_name == "sqlite" else "BEGIN"
        connection = self._connection()
        try:
            connection.exec_driver_sql(begin)
            outcome = work()
            connection.exec_driver_sql("COMMIT")
        except BaseException as error:
            self._roll_back(connection, error)
            raise
        return outcome

    def _roll_back(self, connection: Connection, error: BaseException) -> None:
        if isinstance(error, DBAPIError):
            self._forget_if_broken(error)
        try:
            connection.exec_driver_sql("ROLLBACK")
        except Exception:  # noqa: BLE001 - whatever it was, this connection is not used again
            self._forget()

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._kept, "connection", None)
        if connection is None or connection.closed:
            connection = self._engine.connect()
            self._statements.adopt(connection)
            self._kept.connection = connection
        return connection

    def _forget_if_broken(self, error: DBAPIError) -> None:
        # A server that became read-only after a failover is of no use either (25006).
        if error.connection_invalidated or _state(error) == "25006":
            self._forget()

    def _forget(self) -> None:
        connection: Connection | None = getattr(self._kept, "connection", None)
        self._kept.connection = None
        if connection is not None:
            with suppress(Exception):
                connection.invalidate()
                connection.close()


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _is_victim(error: DBAPIError) -> bool:
    return isinstance(error, IntegrityError) or _state(error) in _VICTIM_STATES
