"""A pool of connections in autocommit mode for the hot paths."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, LifoQueue
from threading import local
from typing import Any

from sqlalchemy import Engine, Executable
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from domain.database.statements import Outcome, Row
from domain.threads import ThreadExecutor
from web.database.driver_statements import CompiledStatements, CoreStatements, DirectStatements
from web.database.engine import count_last_connection_taken, count_pool_timeout

#: SQLSTATEs of transactions to retry: deadlock_detected and serialization_failure.
_VICTIM_STATES = frozenset({"40P01", "40001"})
_MOST_TRIES = 5


class KeptConnections:
    """A pool of autocommit connections, each used by one statement or transaction at a time.

    See `domain.database.statements.KeptConnection`.
    """

    def __init__(self, engine: Engine, *, size: int, patience: float) -> None:
        """Open up to `size` connections; wait up to `patience` seconds for a free one.

        The engine is that of `web.database.engine.open_autocommit_engine`.
        """
        self._engine = engine
        #: `postgresql` or `sqlite`.
        self.dialect_name = engine.dialect.name
        self._patience = patience
        #: None stands for a connection to open; the last used is reused first.
        self._free: LifoQueue[CoreStatements | None] = LifoQueue()
        for _ in range(size):
            self._free.put(None)
        #: The connection of the current transaction.
        self._own = local()
        self._compiled = CompiledStatements(engine)
        #: Runs the writes of SQLite in threads.
        self._executor = ThreadExecutor(threads=size)

    def first(self, statement: Executable, parameters: Mapping[str, Any]) -> Row | None:
        """Run a read and return its first row, or None; see `look_up`."""
        found = self.look_up(statement, parameters)
        return found[0] if found else None

    def look_up(self, statement: Executable, parameters: Mapping[str, Any]) -> Sequence[Row]:
        """Run a read; retry it once on a new connection if the kept one was lost."""
        try:
            return self.all(statement, parameters)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            return self.all(statement, parameters)

    def all(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Sequence[Row]:
        """Run a statement once, without a retry: a lost one may have taken effect."""
        own: CoreStatements | None = getattr(self._own, "kept", None)
        if own is not None:
            return own.run(statement, parameters)
        with self._lent() as kept:
            work = partial(kept.run, statement, parameters)
            return work() if statement.is_select else self._write(kept, work)

    def transact(self, work: Callable[[], Outcome]) -> Outcome:
        """Run the work in a transaction; retry it after a deadlock or a conflict."""
        tries = 0
        while True:
            tries += 1
            try:
                with self._lent() as kept:
                    return self._write(kept, partial(self._in_transaction, kept, work))
            except DBAPIError as error:
                if tries == _MOST_TRIES or not _is_victim(error):
                    raise

    def close_last_used(self) -> None:
        """Close the last used connection, to free the memory of its largest statement."""
        with suppress(Empty):
            _end(self._free.get_nowait())
            self._free.put(None)

    def close(self) -> None:
        """Close all connections that are not in use."""
        kept = []
        with suppress(Empty):
            while True:
                kept.append(self._free.get_nowait())
        for each in kept:
            _end(each)
            self._free.put(None)

    def _in_transaction(self, kept: CoreStatements, work: Callable[[], Outcome]) -> Outcome:
        begin = "BEGIN IMMEDIATE" if self.dialect_name == "sqlite" else "BEGIN"
        self._own.kept = kept
        try:
            kept.connection.exec_driver_sql(begin)
            outcome = work()
            kept.connection.exec_driver_sql("COMMIT")
        except BaseException as error:
            _roll_back(kept, error)
            raise
        finally:
            self._own.kept = None
        return outcome

    def _write(self, kept: CoreStatements, work: Callable[[], Outcome]) -> Outcome:
        """Run writes of SQLite in another thread: it waits for locks and the disk in C."""
        if self.dialect_name != "sqlite":
            return work()
        driver = kept.connection.connection.driver_connection
        return self._executor.run_or_stop(work, stop=driver.interrupt if driver else None)

    @contextmanager
    def _lent(self) -> Iterator[CoreStatements]:
        """Lend a free connection or a new one, and forget it if it breaks meanwhile."""
        try:
            kept = self._free.get(timeout=self._patience)
        except Empty:
            count_pool_timeout()
            raise PoolTimeoutError("All connections are in use.") from None
        if self._free.empty():
            count_last_connection_taken()
        try:
            kept = kept or self._open()
            yield kept
        except BaseException as error:
            if kept is not None:
                self._forget_if_broken(kept, error)
            raise
        finally:
            is_lost = kept is None or kept.connection.closed or kept.connection.invalidated
            self._free.put(None if is_lost else kept)

    def _open(self) -> CoreStatements:
        connection = self._engine.connect()
        if self.dialect_name == "postgresql":
            return DirectStatements(connection, self._compiled)
        return CoreStatements(connection)

    def _forget_if_broken(self, kept: CoreStatements, error: BaseException) -> None:
        if not isinstance(error, Exception):
            _end(kept)  # in the middle of a statement, perhaps
        # 25006: the server became read-only after a failover.
        elif isinstance(error, DBAPIError) and (
            error.connection_invalidated or _state(error) == "25006"
        ):
            _end(kept)
            self.close()  # connections of the same age are broken, too


def _roll_back(kept: CoreStatements, error: BaseException) -> None:
    is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if is_lost or not isinstance(error, Exception):
        return  # there is nothing to say it to
    try:
        kept.connection.exec_driver_sql("ROLLBACK")
    except Exception:  # noqa: BLE001 - whatever it was, this connection is not used again
        _end(kept)


def _end(kept: CoreStatements | None) -> None:
    if kept is not None:
        with suppress(Exception):
            kept.connection.invalidate()
            kept.connection.close()


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _is_victim(error: DBAPIError) -> bool:
    return isinstance(error, IntegrityError) or _state(error) in _VICTIM_STATES
