"""A pool of connections in autocommit mode for the hot paths."""

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

from domain.core.database.failures import gave_way, is_lost, is_read_only
from domain.core.database.statements import KeptConnection, Outcome, Row
from domain.core.threads import ThreadExecutor
from web.database.driver_statements import CoreStatements
from web.database.engine import count_last_connection_taken, count_pool_timeout

_MOST_TRIES = 5


class _Waiter:
    """Somebody who waits for a connection."""

    def __init__(self) -> None:
        self.is_served = Event()
        #: What was handed over; None stands for a connection to open.
        self.kept: CoreStatements | None = None


class _Shelf:
    """Free connections, and those who wait for one in the order in which they came.

    Who borrows one takes it from `free` itself, which needs no lock, or else waits.
    """

    def __init__(self, *, size: int, patience: float) -> None:
        """Have room for so many, for which others wait so many seconds."""
        self._patience = patience
        #: None stands for a connection to open; the last used is reused first.
        self.free: list[CoreStatements | None] = [None] * size
        self.waiters: deque[_Waiter] = deque()
        #: Of those who wait and those who serve them.
        self._lock = Lock()

    def close_last_used(self) -> None:
        """Close the one that was used last, if any is free."""
        with suppress(IndexError):
            _end(self.free.pop())
            self._give_back(None)

    def close(self) -> None:
        """Close all that are free."""
        kept = []
        with suppress(IndexError):
            while True:
                kept.append(self.free.pop())
        for each in kept:
            _end(each)
            self._give_back(None)

    def wait(self) -> CoreStatements | None:
        """Return what others give back; raise PoolTimeoutError if nobody does in time."""
        waiter = _Waiter()
        with self._lock:
            self.waiters.append(waiter)
            self._serve()
        is_served = False
        try:
            is_served = waiter.is_served.wait(self._patience)
        finally:
            with self._lock:
                is_late = waiter.is_served.is_set() and not is_served
                if not waiter.is_served.is_set():
                    self.waiters.remove(waiter)
            if is_late:
                self._give_back(waiter.kept)
        if not is_served:
            count_pool_timeout()
            raise PoolTimeoutError("All connections are in use.")
        return waiter.kept

    def serve(self) -> None:
        """Hand over what is free to those who wait."""
        with self._lock:
            self._serve()

    def _give_back(self, kept: CoreStatements | None) -> None:
        self.free.append(kept)
        if self.waiters:
            self.serve()

    def _serve(self) -> None:
        """Do so; the lock is ours."""
        with suppress(IndexError):
            while self.waiters:
                kept = self.free.pop()
                waiter = self.waiters.popleft()
                waiter.kept = kept
                waiter.is_served.set()


class KeptConnections:
    """A pool of autocommit connections, each used by one statement or transaction at a time.

    See `domain.core.database.statements.KeptConnection`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        size: int,
        patience: float,
        held: Callable[[], KeptConnection | None] | None = None,
    ) -> None:
        """Open up to `size` connections; wait up to `patience` seconds for a free one.

        The engine is that of `web.database.engine.open_autocommit_engine`. A connection that
        `held` returns does the reads of who holds it: if those who hold all connections of a pooler
        waited for another one, nobody would go on.
        """
        self._engine = engine
        #: `postgresql` or `sqlite`.
        self.dialect_name = engine.dialect.name
        self._held = held
        self._writing = self._reading = _Shelf(size=size, patience=patience)
        if self.dialect_name == "sqlite":
            # Who reads waits for no writer there; nor may it wait for the connections of those who
            # do, since the one who has the lock reads settings as well.
            self._reading = _Shelf(size=size, patience=patience)
        #: The connection of the current transaction.
        self._own = local()
        self._make = _maker(engine)
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
        if self._held and statement.is_select and (held := self._held()) is not None:
            return held.all(statement, parameters)
        return self._lend(methodcaller("run", statement, parameters), is_read=statement.is_select)

    def transact(self, work: Callable[[], Outcome]) -> Outcome:
        """Run the work in a transaction; retry it after a deadlock or a conflict."""
        tries = 0
        while True:
            tries += 1
            try:
                return self._lend(partial(self._in_transaction, work), is_read=False)
            except DBAPIError as error:
                is_victim = isinstance(error, IntegrityError) or gave_way(error)
                if tries == _MOST_TRIES or not is_victim:
                    raise

    def close_last_used(self) -> None:
        """Close the last used connection, to free the memory of its largest statement."""
        self._writing.close_last_used()

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._writing.close()
        self._reading.close()

    def _in_transaction(self, work: Callable[[], Outcome], kept: CoreStatements) -> Outcome:
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

    def _lend(self, work: Callable[[CoreStatements], Outcome], *, is_read: bool) -> Outcome:
        """Do the work on a free connection or a new one, and forget it if it breaks meanwhile."""
        shelf = self._reading if is_read else self._writing
        try:
            kept = shelf.free.pop()
        except IndexError:
            kept = shelf.wait()
        if not shelf.free:
            count_last_connection_taken()
        try:
            kept = kept or self._open()
            if is_read or self.dialect_name != "sqlite":
                return work(kept)
            # It waits for locks and the disk in C.
            driver = kept.connection.connection.driver_connection
            stop = driver.interrupt if driver else None
            return self._executor.run_or_stop(partial(work, kept), stop=stop)
        except BaseException as error:
            if kept is not None:
                self._forget_if_broken(kept, error)
                if kept.connection.closed or kept.connection.invalidated:
                    kept = None
            raise
        finally:
            shelf.free.append(kept)
            # Whoever waits has said so before it looked for the last time.
            if shelf.waiters:
                shelf.serve()

    def _open(self) -> CoreStatements:
        return self._make(self._engine.connect())

    def _forget_if_broken(self, kept: CoreStatements, error: BaseException) -> None:
        if not isinstance(error, Exception):
            _end(kept)  # in the middle of a statement, perhaps
        elif is_lost(error) or is_read_only(error):
            _end(kept)
            self.close()  # connections of the same age are broken, too


def _maker(engine: Engine) -> Callable[[Connection], CoreStatements]:
    """Return what runs statements on a new connection of this engine."""
    if engine.dialect.name != "postgresql":
        return CoreStatements
    from web.database import direct_statements  # noqa: PLC0415 - SQLite needs no psycopg

    compiled = direct_statements.CompiledStatements(engine)
    return partial(direct_statements.DirectStatements, compiled=compiled)


def _roll_back(kept: CoreStatements, error: BaseException) -> None:
    if is_lost(error) or not isinstance(error, Exception):
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
