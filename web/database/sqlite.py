"""SQLite connections with a deadline for every statement.

SQLite has no statement timeout. It waits in C for locks and the disk, which would block all
greenlets of a web process, so there it runs in threads.
"""

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import Any, Self, TypeVar

from domain.threads import ThreadExecutor

Outcome = TypeVar("Outcome")

#: Virtual machine steps between checks of the deadline, about a millisecond.
_STEPS = 20_000


class DeadlineSqliteConnection(sqlite3.Connection):
    """A connection whose statements have a time limit."""

    #: Seconds; 0 for no limit.
    limit = 0.0
    #: The thread pool to run in, if any.
    executor: ThreadExecutor | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Seconds that the current statement has taken.
        self.spent = 0.0
        self._seen_at = 0.0
        self.set_progress_handler(self._is_over, _STEPS)

    def work(self, work: Callable[[], Outcome]) -> Outcome:
        """Run SQLite and add up its time."""
        self._seen_at = monotonic()
        if self.executor is None:
            return work()
        return self.executor.run_or_stop(work, stop=self.interrupt)

    def _is_over(self) -> bool:
        moment = monotonic()
        self.spent += moment - self._seen_at
        self._seen_at = moment
        return 0 < self.limit < self.spent

    def cursor(self, factory: Any = None) -> Any:
        """Return a cursor with the limit."""
        return super().cursor(factory or DeadlineCursor)

    def commit(self) -> None:
        """Commit the transaction."""
        self.work(super().commit)

    def rollback(self) -> None:
        """Roll the transaction back."""
        self.work(super().rollback)


class DeadlineCursor(sqlite3.Cursor):
    """A cursor with the limit of its connection."""

    connection: DeadlineSqliteConnection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        """Run a statement."""
        self.connection.spent = 0.0
        self.connection.work(partial(super().execute, sql, parameters))
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        """Run a statement for each row."""
        self.connection.spent = 0.0
        self.connection.work(partial(super().executemany, sql, parameters))
        return self

    def fetchone(self) -> Any:
        """Return the next row."""
        return self.connection.work(super().fetchone)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return the next rows."""
        return self.connection.work(partial(super().fetchmany, size or self.arraysize))

    def fetchall(self) -> list[Any]:
        """Return the rest of the rows."""
        return self.connection.work(super().fetchall)
