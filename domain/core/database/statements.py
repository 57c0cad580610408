"""The database interface of the hot paths: one connection, one statement, no ORM.

`web/database/autocommit_pool.py` implements the interface. It saves round trips, which are the main
cost of a request.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Executable, SQLColumnExpression
from sqlalchemy.orm import Session

Outcome = TypeVar("Outcome")
#: Values of a row in the order of the statement's columns. A `NamedTuple` assigns names to the
#: values.
Row = tuple[Any, ...]
#: Function that runs a statement: a method of a persistent connection, or of a session that writes.
RunStatement = Callable[[Executable, Mapping[str, object] | None], Any]


def build_columns(
    fields: Iterable[str],
    tables: Mapping[str, type[Any]],
    **others: SQLColumnExpression[Any],
) -> list[SQLColumnExpression[Any]]:
    """Return the columns for the fields of a row type, in the same order.

    The name of a field is the prefix of a table in `tables`, followed by the name of a column. The
    first matching prefix is used. Computed columns are in `others`, keyed by field name.
    """
    return [
        (others[name] if name in others else _find_column(name, tables)).label(name)
        for name in fields
    ]


def _find_column(name: str, tables: Mapping[str, type[Any]]) -> SQLColumnExpression[Any]:
    prefix = next(prefix for prefix in tables if name.startswith(prefix))
    found: SQLColumnExpression[Any] = getattr(tables[prefix], name.removeprefix(prefix))
    return found


class StatementConnection(Protocol):
    """A persistent autocommit connection, for statements and transactions of the hot paths."""

    @property
    def dialect_name(self) -> str:
        """Name of the database dialect: `postgresql` or `sqlite`."""

    def fetch_first_row(
        self, statement: Executable, parameters: Mapping[str, object]
    ) -> Row | None:
        """Run a query and return its first row, or None.

        If the connection was lost, retry once.
        """

    def fetch_rows(self, statement: Executable, parameters: Mapping[str, object]) -> Sequence[Row]:
        """Run a query and return its rows.

        If the connection was lost, retry once.
        """

    def execute_statement(
        self,
        statement: Executable,
        parameters: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    ) -> Sequence[Row]:
        """Run one statement and return its rows, if it has any."""

    def run_transaction(self, work: Callable[[], Outcome]) -> Outcome:
        """Run a function in a transaction that may write, and commit the transaction.

        Retry a few times after a deadlock or a serialization failure.
        """


class SessionConnection:
    """A connection in the transaction of a session, for actions that share code with hot paths."""

    def __init__(self, session: Session) -> None:
        """Flush the pending changes of a session, and use its connection."""
        self._connection = session.connection()
        #: Name of the dialect: `postgresql` or `sqlite`.
        self.dialect_name = self._connection.dialect.name

    def fetch_first_row(
        self, statement: Executable, parameters: Mapping[str, object]
    ) -> Row | None:
        """Run a query and return its first row, or None."""
        found = self.execute_statement(statement, parameters)
        return found[0] if found else None

    def fetch_rows(self, statement: Executable, parameters: Mapping[str, object]) -> Sequence[Row]:
        """Run a query and return its rows."""
        return self.execute_statement(statement, parameters)

    def execute_statement(
        self,
        statement: Executable,
        parameters: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    ) -> Sequence[Row]:
        """Run one statement and return its rows, if it has any."""
        result = self._connection.execute(statement, cast("Any", parameters))
        return cast("Sequence[Row]", result.all()) if result.returns_rows else ()

    def run_transaction(self, work: Callable[[], Outcome]) -> Outcome:
        """Run a function without a commit, since the owner of the session commits."""
        return work()
