"""SQLite connections with a deadline for every statement and a queue of writers.

SQLite has no statement timeout. It waits in C code for locks and the disk, which would block all
greenlets of a web process. Web processes therefore run SQLite in threads.
"""

import fcntl
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, Self, TypeVar

from sqlalchemy.engine import make_url

from domain.core.thread_pools import ThreadExecutor
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.wal")
Outcome = TypeVar("Outcome")
#: Number of steps of SQLite's virtual machine between checks of the deadline. These steps take
#: about a millisecond.
_STEPS_BETWEEN_CHECKS = 20_000
#: Pattern for statements that take the write lock outside of a transaction.
_WRITE_STATEMENT = re.compile(r"\s*(BEGIN IMMEDIATE|INSERT|UPDATE|DELETE)\b")
#: Milliseconds for which SQLite waits for the lock before it is called again. SQLite checks the
#: lock after one, two and five milliseconds, and so on. With a longer time, the lock would stay
#: free between checks.
_LOCK_RETRY_MS = 3
#: Size in bytes above which the write-ahead log is truncated. SQLite itself runs a checkpoint every
#: four megabytes.
MAX_WAL_BYTES = 16 * 2**20
#: Maximum size in bytes of the log file after SQLite restarts the log.
KEPT_WAL_BYTES = 2 * MAX_WAL_BYTES
_TRUNCATION_INTERVAL_SECONDS = 2.0
#: Maximum time in seconds for which truncating a log of `_LONG_WAL_BYTES` or more waits for
#: readers, while writers wait. If a reader takes longer, the next run truncates the log. For
#: shorter logs, the timeout decreases with the square of the log size, so that frequent readers
#: rarely delay writers.
_READER_TIMEOUT_SECONDS = 0.25
_LONG_WAL_BYTES = 8 * MAX_WAL_BYTES


class WriterQueue:
    """A queue for SQLite's single write lock, shared by all threads of all processes.

    SQLite has no queue: waiting writers check at growing intervals, and a new writer may get the
    free lock first. A writer may thus time out while others write many times. With this queue, only
    the first writer checks. The kernel maintains the queue and removes killed processes.
    """

    def __init__(self, database: str) -> None:
        """Store the path of the lock file, which is next to the database."""
        self._path = f"{database}-writers"

    @contextmanager
    def wait_for_turn(self) -> Iterator[None]:
        """Wait until this writer is first in the queue, and stay first while the block runs."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
        except OSError:  # SQLite itself will report the problem with the disk
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            # A child process that is just starting may still share the open file.
            fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)


class DeadlineSqliteConnection(sqlite3.Connection):
    """A connection with a time limit for statements and a queue for writes."""

    #: Time limit in seconds, or 0 for no limit.
    limit = 0.0
    #: Thread pool in which the connection runs, if any.
    executor: ThreadExecutor | None = None

    def __init__(self, database: str, timeout: float = 5.0, **kwargs: Any) -> None:
        super().__init__(database, timeout=timeout, **kwargs)
        #: Seconds to wait for the write lock, including the queue.
        self.patience = timeout
        self._queue = WriterQueue(database)
        #: Seconds that the current statement has taken.
        self.spent = 0.0
        self._seen_at = 0.0
        self.set_progress_handler(self._is_time_limit_exceeded, _STEPS_BETWEEN_CHECKS)

    def run_within_limit(self, work: Callable[[], Outcome], *, sql: str = "") -> Outcome:
        """Call SQLite and measure the duration of the call.

        Statements that take the write lock are queued.
        """
        if sql and not self.in_transaction and _WRITE_STATEMENT.match(sql):
            work = partial(self._run_when_first, work)
        self._seen_at = monotonic()
        if self.executor is None:
            return work()
        return self.executor.run_interruptibly(work, stop=self.interrupt)

    def _run_when_first(self, run: Callable[[], Outcome]) -> Outcome:
        """Run a function that takes the write lock, once this connection is first in the queue.

        Raise SQLite's error if others hold the lock for too long. Writers that are earlier in the
        queue also time out earlier.
        """
        deadline = monotonic() + self.patience
        usual = int(self.patience * 1000)
        with self._queue.wait_for_turn():
            sqlite3.Cursor(self).execute(
                f"PRAGMA busy_timeout = {min(_LOCK_RETRY_MS, usual)}"
            ).close()
            try:
                while True:
                    try:
                        return run()
                    except sqlite3.OperationalError as error:
                        if not _is_busy(error) or monotonic() >= deadline:
                            raise
            finally:
                sqlite3.Cursor(self).execute(f"PRAGMA busy_timeout = {usual}").close()

    def _is_time_limit_exceeded(self) -> bool:
        moment = monotonic()
        self.spent += moment - self._seen_at
        self._seen_at = moment
        return 0 < self.limit < self.spent

    def cursor(self, factory: Any = None) -> Any:
        """Return a cursor with the connection's time limit."""
        return super().cursor(factory or DeadlineCursor)

    def commit(self) -> None:
        """Commit the transaction, in another thread if the connection has an executor."""
        self.run_within_limit(super().commit)

    def rollback(self) -> None:
        """Roll the transaction back, in another thread if the connection has an executor."""
        self.run_within_limit(super().rollback)


class DeadlineCursor(sqlite3.Cursor):
    """A cursor with the time limit of its connection."""

    connection: DeadlineSqliteConnection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        """Run a statement within the connection's time limit, and return this cursor."""
        self.connection.spent = 0.0
        self.connection.run_within_limit(partial(super().execute, sql, parameters), sql=sql)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        """Run a statement for each row of parameters, and return this cursor.

        The time limit applies to all rows together.
        """
        self.connection.spent = 0.0
        self.connection.run_within_limit(partial(super().executemany, sql, parameters), sql=sql)
        return self

    def fetchone(self) -> Any:
        """Return the next row, or None if no row is left."""
        return self.connection.run_within_limit(super().fetchone)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return up to `size` rows, or `arraysize` rows by default."""
        return self.connection.run_within_limit(partial(super().fetchmany, size or self.arraysize))

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        return self.connection.run_within_limit(super().fetchall)


def start_wal_truncation(settings: Settings) -> None:
    """Start a daemon thread that truncates SQLite's write-ahead log regularly."""
    file = make_url(settings.database_url).database
    if settings.uses_sqlite and file:
        Thread(
            target=_truncate_regularly, args=(Path(file),), name="wal keeper", daemon=True
        ).start()


def _truncate_regularly(file: Path) -> None:
    while True:
        try:
            truncate_wal(file)
        except sqlite3.Error as error:  # the disk is full or the database is locked
            _log.warning(
                "SQLite write-ahead log was not truncated; the worker will retry.",
                extra={"event": "sqlite.wal_truncation_failed", "reason": str(error)},
            )
        sleep(_TRUNCATION_INTERVAL_SECONDS)


def truncate_wal(file: Path) -> bool:
    """Truncate the write-ahead log if it is too long, and return whether it was truncated."""
    size = get_wal_bytes(file)
    if size <= MAX_WAL_BYTES:
        return False
    patience = _READER_TIMEOUT_SECONDS * min(1.0, size / _LONG_WAL_BYTES) ** 2
    connection = sqlite3.connect(file, timeout=patience, isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA synchronous = FULL")
        # A passive checkpoint comes first, because it does not block writers.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        with WriterQueue(str(file)).wait_for_turn():
            is_hindered, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_hindered


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def get_wal_bytes(file: Path) -> int:
    """Return the size of a database's write-ahead log in bytes, or 0 if there is no log."""
    with suppress(FileNotFoundError):
        return file.with_name(f"{file.name}-wal").stat().st_size
    return 0
