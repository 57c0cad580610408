"""Connections to SQLite that give up on a statement that takes too long.

SQLite has no limit of its own. And it waits in C, for locks and for the disk: in a web process that
would keep all other requests waiting, so there its work is done aside.
"""

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import Any, Self, TypeVar

from domain.aside import Aside

Outcome = TypeVar("Outcome")

#: After so many steps, about a millisecond's work, a statement is asked how long it has worked.
_STEPS = 20_000


class PunctualSqlite(sqlite3.Connection):
    """A connection whose statements may work for so long, and no longer."""

    #: Seconds; 0 for as long as it takes.
    limit = 0.0
    #: Where its work is done, if not here.
    aside: Aside | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._spent = 0.0
        self._seen_at = 0.0
        self.set_progress_handler(self._is_over, _STEPS)

    def begin_statement(self) -> None:
        """Count anew."""
        self._spent = 0.0

    def work(self, work: Callable[[], Outcome]) -> Outcome:
        """Let SQLite work, and count how long."""
        self._seen_at = monotonic()
        if self.aside is None:
            return work()
        return self.aside.run_or_stop(work, stop=self.interrupt)

    def _is_over(self) -> bool:
        moment = monotonic()
        self._spent += moment - self._seen_at
        self._seen_at = moment
        return 0 < self.limit < self._spent

    def cursor(self, factory: Any = None) -> Any:
        """Return a cursor of ours."""
        return super().cursor(factory or PunctualCursor)

    def commit(self) -> None:
        """Write what was done to the disk."""
        self.work(super().commit)

    def rollback(self) -> None:
        """Undo what was done."""
        self.work(super().rollback)


class PunctualCursor(sqlite3.Cursor):
    """Its statements have the limit of their connection."""

    connection: PunctualSqlite

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        """Run a statement."""
        self.connection.begin_statement()
        self.connection.work(partial(super().execute, sql, parameters))
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        """Run a statement for each row."""
        self.connection.begin_statement()
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
