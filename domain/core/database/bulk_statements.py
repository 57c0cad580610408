"""Statements for upserts, bulk changes and lookups of many keys, and related SQL functions.

After a bulk change, SQLAlchemy by default updates the changed objects of the session
(`synchronize_session`). The statements in this module omit this step, since the session does not
use the changed rows again.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Delete,
    Insert,
    Row,
    Select,
    SQLColumnExpression,
    Update,
    bindparam,
    cast,
    delete,
    func,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import GenericFunction, ReturnTypeFromArgs

Value = TypeVar("Value")
#: Maximum number of values in a statement. Databases limit the number, and Postgres scans whole
#: tables if a statement contains too many values.
_MAX_VALUES = 1_000


def split_into_batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield the values in batches, each of which fits into a statement."""
    return (values[begin : begin + _MAX_VALUES] for begin in range(0, len(values), _MAX_VALUES))


def fetch_rows_by_key(
    found: Select[*tuple[Any, ...]],
    key: SQLColumnExpression[int],
    values: Collection[int],
    *,
    session: Session,
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the selected rows whose key is one of the values, in no particular order.

    On Postgres, each value is looked up separately. Without statistics, the planner assumes that
    each value matches half a percent of the table. It would then scan the whole table for many
    values.
    """
    if session.get_bind().dialect.name != "postgresql":
        parts = split_into_batches(list(values))
        return [row for some in parts for row in session.execute(found.where(key.in_(some)))]
    listed = func.unnest(cast(bindparam(None, list(values)), ARRAY(BigInteger)))
    value = listed.table_valued("value", name="listed").render_derived()
    # OFFSET 0 prevents the planner from merging the subquery.
    of_value = found.where(key == value.c.value).offset(0).correlate(value).lateral("found")
    return session.execute(select(*of_value.c).select_from(value.join(of_value, true()))).all()


class latest(ReturnTypeFromArgs[datetime]):  # noqa: N801 - named as functions of SQL are
    """SQL function that returns the latest of several times, none of which may be NULL."""

    inherit_cache = True

    def __init__(self, *times: SQLColumnExpression[datetime]) -> None:
        """Build the function call with the given times as its arguments."""
        super().__init__(*times)


@compiles(latest, "postgresql")
def _compile_greatest(element: latest, compiler: Any, **options: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **options)})"


@compiles(latest, "sqlite")
def _compile_max(element: latest, compiler: Any, **options: Any) -> str:
    return f"max({compiler.process(element.clauses, **options)})"


class asynchronous_commit(GenericFunction[bool]):  # noqa: N801 - named as functions of SQL are
    """An always-true condition that makes the commit return without waiting for the disk.

    Use it only in a statement that is a complete transaction. If the host fails within the next
    second, the change may be lost.
    """

    type = Boolean()
    inherit_cache = True


@compiles(asynchronous_commit, "postgresql")
def _compile_asynchronous_commit(
    element: asynchronous_commit, compiler: Any, **options: Any
) -> str:
    del element, compiler, options
    return "set_config('synchronous_commit', 'off', true) = 'off'"


@compiles(asynchronous_commit, "sqlite")
def _compile_true(element: asynchronous_commit, compiler: Any, **options: Any) -> str:
    del element, compiler, options
    return "true"


def build_session_insert(
    table: type[Any], *, session: Session
) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT with support for ON CONFLICT, for the session's database."""
    return build_insert(session.get_bind().dialect.name, table)


def build_insert(dialect_name: str, table: type[Any]) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT with support for ON CONFLICT, for a database dialect."""
    if dialect_name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def build_bulk_insert(table: type[Any]) -> Insert:
    """Return an INSERT of many rows, all with the same columns.

    By default, SQLAlchemy omits columns without a value, and runs a separate statement for each set
    of columns.
    """
    return insert(table).execution_options(render_nulls=True)


def build_bulk_update(table: Any) -> Update:
    """Return an UPDATE of a table, to which callers add conditions and values."""
    return update(table).execution_options(synchronize_session=False)


def build_bulk_delete(table: Any) -> Delete:
    """Return a DELETE of a table, to which callers add conditions."""
    return delete(table).execution_options(synchronize_session=False)
