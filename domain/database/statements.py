"""What the hot paths ask of the database: one connection, one statement, no ORM.

`web/database/connections.py` provides it: a round trip costs more than all else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Executable

Outcome = TypeVar("Outcome")
#: What runs a statement: a hot connection, or a session that has begun to write.
Run = Callable[[Executable, Mapping[str, Any] | None], Any]


class HotRow(Protocol):
    """A row: its columns by name and by number."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a column."""

    def __getitem__(self, index: int | slice) -> Any:
        """Return the value of a column, or those of several as a tuple."""

    def __len__(self) -> int:
        """Return how many columns there are."""

    def __iter__(self) -> Iterator[Any]:
        """Go through the values."""

    def _asdict(self) -> dict[str, Any]:
        """Return names and values."""


class HotConnection(Protocol):
    """A kept connection in autocommit mode."""

    @property
    def dialect_name(self) -> str:
        """`postgresql` or `sqlite`."""

    def first(self, statement: Executable, parameters: Mapping[str, Any]) -> HotRow | None:
        """Run a read and return its first row; tried again once if the connection was stale."""

    def look_up(self, statement: Executable, parameters: Mapping[str, Any]) -> Sequence[HotRow]:
        """Run a read and return its rows; tried again once if the connection was stale."""

    def all(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Sequence[HotRow]:
        """Run one statement and return its rows, if it has any."""

    def transact(self, work: Callable[[], Outcome]) -> Outcome:
        """Do the work in a transaction that may write, and commit it.

        It is done again, a few times, if the database chose it as the victim of a conflict.
        """
