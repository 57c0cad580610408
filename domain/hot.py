"""What the hot paths ask of the database: one connection, one statement, no ORM.

`web/database.py` provides it; `speed.md`'s lesson is that a round trip costs more than all else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Executable, Row

Outcome = TypeVar("Outcome")


class HotConnection(Protocol):
    """A kept connection in autocommit mode."""

    @property
    def dialect_name(self) -> str:
        """`postgresql` or `sqlite`."""

    def first(self, statement: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
        """Run a read and return its first row; tried again once if the connection was stale."""

    def all(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Sequence[Row[Any]]:
        """Run one statement and return its rows, if it has any."""

    def transact(self, work: Callable[[], Outcome]) -> Outcome:
        """Do the work in a transaction that may write, and commit it.

        It is done again, a few times, if the database chose it as the victim of a conflict.
        """
