"""Pool of connections in autocommit mode for frequent statements."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from threading import Event, Lock, local
from typing import Any

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from domain.core.database.failures import is_conflict, is_connection_lost, is_read_only
from domain.core.database.statements import Outcome, Row, StatementConnection
from domain.core.thread_pools import ThreadExecutor
from web.database.compiled_statements import SqlalchemyExecutor
from web.database.engine import count_pool_timeout, record_pool_exhaustion

_MAX_TRIES = 5


class _WaitingRequest:
    """A request that waits for a connection."""

    def __init__(self) -> None:
        self.is_served = Event()
        #: Connection that was handed over, or None for a connection that still has to be opened.
        self.kept: SqlalchemyExecutor | None = None


class _FreeConnections:
    """Free connections, and a queue of the requests that wait for a connection.

    Requests take a connection from `free`, which needs no lock. If no connection is free, the
    requests wait.
    """

    def __init__(self, *, size: int, timeout_seconds: float) -> None:
        """Create `size` slots for connections.

        Requests wait up to `timeout_seconds` seconds for a free slot.
        """
        self._patience = timeout_seconds
        #: Free connections. The most recently used connection is reused first. None stands for a
        #: connection that still has to be opened.
        self.free: list[SqlalchemyExecutor | None] = [None] * size
        self.waiters: deque[_WaitingRequest] = deque()
        #: Lock for the queue of waiting requests, held while a thread serves them.
        self._lock = Lock()

    def close_last_used_connection(self) -> None:
        """Close the free connection that was used most recently, if any."""
        with suppress(IndexError):
            _discard_connection(self.free.pop())
            self._return_connection(None)

    def close_idle_connections(self) -> None:
        """Close all free connections."""
        kept = []
        with suppress(IndexError):
            while True:
                kept.append(self.free.pop())
        for each in kept:
            _discard_connection(each)
            self._return_connection(None)

    def wait_for_connection(self) -> SqlalchemyExecutor | None:
        """Wait until another thread releases a connection, and return the connection.

        Raise PoolTimeoutError if no connection is released in time.
        """
        waiter = _WaitingRequest()
        with self._lock:
            self.waiters.append(waiter)
            self._serve_waiting_requests()
        is_served = False
        try:
            is_served = waiter.is_served.wait(self._patience)
        finally:
            with self._lock:
                is_late = waiter.is_served.is_set() and not is_served
                if not waiter.is_served.is_set():
                    self.waiters.remove(waiter)
            if is_late:
                self._return_connection(waiter.kept)
        if not is_served:
            count_pool_timeout()
            raise PoolTimeoutError("All connections are in use.")
        return waiter.kept

    def serve_waiting_requests(self) -> None:
        """Hand free connections to waiting requests."""
        with self._lock:
            self._serve_waiting_requests()

    def _return_connection(self, kept_connection: SqlalchemyExecutor | None) -> None:
        self.free.append(kept_connection)
        if self.waiters:
            self.serve_waiting_requests()

    def _serve_waiting_requests(self) -> None:
        """Hand free connections to waiting requests.

        The caller must hold the lock.
        """
        with suppress(IndexError):
            while self.waiters:
                kept = self.free.pop()
                waiter = self.waiters.popleft()
                waiter.kept = kept
                waiter.is_served.set()


class AutocommitPool:
    """Pool of autocommit connections, each used by one statement or transaction at a time.

    See `domain.core.database.statements.StatementConnection`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        size: int,
        timeout_seconds: float,
        held: Callable[[], StatementConnection | None] | None = None,
    ) -> None:
        """Create a pool of up to `size` connections.

        Requests wait up to `timeout_seconds` for a free connection. The engine comes from
        `web.database.engine.open_autocommit_engine`. If `held` returns a connection, reads use that
        connection. Without `held`, requests could occupy all connections of a pooler and wait for
        each other.
        """
        self._engine = engine
        #: Name of the dialect, `postgresql` or `sqlite`.
        self.dialect_name = engine.dialect.name
        self._held = held
        self._writing = self._reading = _FreeConnections(size=size, timeout_seconds=timeout_seconds)
        if self.dialect_name == "sqlite":
            # In SQLite, readers do not wait for writers. They must not wait for the writers'
            # connections either, because the transaction with the write lock also reads settings.
            self._reading = _FreeConnections(size=size, timeout_seconds=timeout_seconds)
        #: Connection of the current greenlet's transaction, if any.
        self._own = local()
        self._make = _get_connection_wrapper(engine)
        #: Executor that runs SQLite's writes in threads.
        self._executor = ThreadExecutor(threads=size)

    def fetch_first_row(self, statement: Executable, parameters: Mapping[str, Any]) -> Row | None:
        """Run a read and return its first row, or None.

        The read is retried as in `fetch_rows`.
        """
        found = self.fetch_rows(statement, parameters)
        return found[0] if found else None

    def fetch_rows(self, statement: Executable, parameters: Mapping[str, Any]) -> Sequence[Row]:
        """Run a read and return its rows.

        The read is retried once on a new connection if the pooled connection was lost.
        """
        try:
            return self.execute_statement(statement, parameters)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            return self.execute_statement(statement, parameters)

    def execute_statement(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Sequence[Row]:
        """Run a statement once.

        The statement is not retried, because it may have taken effect before an error.
        """
        own: SqlalchemyExecutor | None = getattr(self._own, "kept", None)
        if own is not None:
            return own.run_statement(statement, parameters)
        if self._held and statement.is_select and (held := self._held()) is not None:
            return held.execute_statement(statement, parameters)
        return self._run_on_connection(
            methodcaller("run_statement", statement, parameters), is_read=statement.is_select
        )

    def run_transaction(self, work: Callable[[], Outcome]) -> Outcome:
        """Run a function in a transaction, and retry it after a deadlock or a conflict."""
        tries = 0
        while True:
            tries += 1
            try:
                return self._run_on_connection(
                    partial(self._run_in_transaction, work), is_read=False
                )
            except DBAPIError as error:
                is_victim = isinstance(error, IntegrityError) or is_conflict(error)
                if tries == _MAX_TRIES or not is_victim:
                    raise

    def close_last_used_connection(self) -> None:
        """Close the most recently used connection to free the memory of its largest statement."""
        self._writing.close_last_used_connection()

    def close_idle_connections(self) -> None:
        """Close all connections that are not in use."""
        self._writing.close_idle_connections()
        self._reading.close_idle_connections()

    def _run_in_transaction(
        self, work: Callable[[], Outcome], kept_connection: SqlalchemyExecutor
    ) -> Outcome:
        begin = "BEGIN IMMEDIATE" if self.dialect_name == "sqlite" else "BEGIN"
        self._own.kept = kept_connection
        try:
            kept_connection.connection.exec_driver_sql(begin)
            outcome = work()
            kept_connection.connection.exec_driver_sql("COMMIT")
        except BaseException as error:
            _roll_back_or_discard(kept_connection, error)
            raise
        finally:
            self._own.kept = None
        return outcome

    def _run_on_connection(
        self, work: Callable[[SqlalchemyExecutor], Outcome], *, is_read: bool
    ) -> Outcome:
        """Call a function with a connection, and discard the connection if it breaks."""
        shelf = self._reading if is_read else self._writing
        try:
            kept = shelf.free.pop()
        except IndexError:
            kept = shelf.wait_for_connection()
        if not shelf.free:
            record_pool_exhaustion()
        try:
            kept = kept or self._open_connection()
            if is_read or self.dialect_name != "sqlite":
                return work(kept)
            # The driver waits for locks and the disk in C code, which would block the event loop.
            driver = kept.connection.connection.driver_connection
            stop = driver.interrupt if driver else None
            return self._executor.run_interruptibly(partial(work, kept), stop=stop)
        except BaseException as error:
            if kept is not None:
                self._discard_if_broken(kept, error)
                if kept.connection.closed or kept.connection.invalidated:
                    kept = None
            raise
        finally:
            shelf.free.append(kept)
            # Waiting requests register before their last check for a free connection.
            if shelf.waiters:
                shelf.serve_waiting_requests()

    def _open_connection(self) -> SqlalchemyExecutor:
        return self._make(self._engine.connect())

    def _discard_if_broken(self, kept_connection: SqlalchemyExecutor, error: BaseException) -> None:
        if not isinstance(error, Exception):
            _discard_connection(kept_connection)  # a statement may still be running
        elif is_connection_lost(error) or is_read_only(error):
            _discard_connection(kept_connection)
            self.close_idle_connections()  # connections opened before the failure are broken too


def _get_connection_wrapper(engine: Engine) -> Callable[[Connection], SqlalchemyExecutor]:
    """Return the function that wraps a new connection of this engine."""
    if engine.dialect.name != "postgresql":
        return SqlalchemyExecutor
    from web.database import psycopg_statements  # noqa: PLC0415 - SQLite needs no psycopg

    compiled = psycopg_statements.StatementCache(engine)
    return partial(psycopg_statements.PsycopgExecutor, compiled=compiled)


def _roll_back_or_discard(kept_connection: SqlalchemyExecutor, error: BaseException) -> None:
    if is_connection_lost(error) or not isinstance(error, Exception):
        return  # the connection can no longer be used
    try:
        kept_connection.connection.exec_driver_sql("ROLLBACK")
    except Exception:  # noqa: BLE001 - after any error, this connection is not reused
        _discard_connection(kept_connection)


def _discard_connection(kept_connection: SqlalchemyExecutor | None) -> None:
    if kept_connection is not None:
        with suppress(Exception):
            kept_connection.connection.invalidate()
            kept_connection.connection.close()
