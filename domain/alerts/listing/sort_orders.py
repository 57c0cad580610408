"""Sort orders of alert lists, and cursors that mark a position in a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row, Select, literal, tuple_
from sqlalchemy.sql import operators

from domain.alerts.listing.filters import build_severity_order
from domain.core.database.pagination import MAX_ID, KeysetPage, parse_id
from domain.core.errors import QueryError
from models import Alert

SortValues = tuple[int | datetime, ...]
Item = TypeVar("Item")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_COUNT = 2**31 - 1
_MAX_RANK = 2**15 - 1


@dataclass(frozen=True)
class SortKey:
    """A value that alerts are sorted by."""

    name: str
    column: ColumnElement[Any]
    is_time: bool = False
    max_value: int = MAX_ID


_ID_KEY = SortKey("id", Alert.id.expression)
_START_KEY = SortKey("started_at", Alert.started_at.expression, is_time=True)


@dataclass(frozen=True)
class SortOrder:
    """A sequence of sort keys, all ascending or all descending. The last key is the ID."""

    name: str
    label: str
    keys: tuple[SortKey, ...]
    is_descending: bool = True
    #: True if only the newest alerts of each status are sorted, since no index has this order.
    is_among_newest: bool = False

    @property
    def is_ordered_by_start(self) -> bool:
        """True if the index for all statuses has this order."""
        return self.keys == (_START_KEY, _ID_KEY)

    def get_sort_values(self, row: Row[Any]) -> SortValues:
        """Return the values of the sort keys in a row."""
        return tuple(getattr(row, f"key_{key.name}") for key in self.keys)


SORT_ORDERS = {
    order.name: order
    for order in (
        SortOrder("started", "Newest", (_START_KEY, _ID_KEY)),
        SortOrder("oldest", "Oldest", (_START_KEY, _ID_KEY), is_descending=False),
        SortOrder(
            "severity",
            "Severity",
            (SortKey("urgency", build_severity_order(), max_value=_MAX_RANK), _START_KEY, _ID_KEY),
        ),
        SortOrder(
            "last_event",
            "Last event",
            (SortKey("last_event_at", Alert.last_event_at.expression, is_time=True), _ID_KEY),
            is_among_newest=True,
        ),
        SortOrder(
            "events",
            "Most events",
            (SortKey("events", Alert.events.expression, max_value=_MAX_COUNT), _ID_KEY),
            is_among_newest=True,
        ),
    )
}
NEWEST_FIRST = SORT_ORDERS["started"]


@dataclass(frozen=True, kw_only=True)
class ListSlice:
    """A page of a list: the rows after or before a position in its order."""

    size: int
    order: SortOrder
    following: SortValues | None = None
    preceding: SortValues | None = None

    @property
    def is_backwards(self) -> bool:
        """True if the page is read from its last row to its first."""
        return self.preceding is not None

    def limit_query(
        self, columns: Sequence[ColumnElement[Any]], found: Select[*tuple[Any, ...]]
    ) -> Select[*tuple[Any, ...]]:
        """Limit a query to the rows of the page, plus one row that shows whether there are more."""
        order, backwards = self.order, self.is_backwards
        position = self.preceding if backwards else self.following
        if position is not None:
            found = found.where(
                _build_position_condition(columns, position, order=order, backwards=backwards)
            )
        return found.order_by(*build_order_by(columns, order=order, backwards=backwards)).limit(
            self.size + 1
        )

    def build_page(self, found: Sequence[tuple[Item, SortValues]]) -> KeysetPage[Item]:
        """Return the page for the rows of a limited query, which include their sort key values."""
        is_more, rows = len(found) > self.size, found[: self.size]
        if self.is_backwards:
            rows = rows[::-1]
        has_next = is_more or self.is_backwards
        has_previous = is_more if self.is_backwards else self.following is not None
        return KeysetPage(
            items=tuple(item for item, _ in rows),
            next_before=format_sort_cursor(rows[-1][1]) if rows and has_next else None,
            previous_after=format_sort_cursor(rows[0][1]) if rows and has_previous else None,
        )


@dataclass(frozen=True, kw_only=True)
class AlertSlice(ListSlice):
    """A page of an alert list, newest alerts first by default."""

    order: SortOrder = NEWEST_FIRST


def _build_position_condition(
    columns: Sequence[ColumnElement[Any]], values: SortValues, *, order: SortOrder, backwards: bool
) -> ColumnElement[bool]:
    given = [literal(value, column.type) for column, value in zip(columns, values, strict=True)]
    compare = operators.lt if order.is_descending is not backwards else operators.gt
    found: ColumnElement[bool] = compare(tuple_(*columns), tuple_(*given))
    return found


def build_order_by(
    columns: Sequence[ColumnElement[Any]], *, order: SortOrder, backwards: bool
) -> list[ColumnElement[Any]]:
    """Return the ORDER BY expressions of a sort order."""
    if order.is_descending is not backwards:
        return [column.desc() for column in columns]
    return [column.asc() for column in columns]


def format_sort_cursor(values: SortValues) -> str:
    """Return a cursor for URLs that contains the sort key values of a row."""
    return "_".join(map(_format_value, values))


def _format_value(value: int | datetime) -> str:
    number = (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value
    return f"n{-number}" if number < 0 else str(number)


def parse_sort_cursor(text: str | None, order: SortOrder) -> SortValues | None:
    """Return the sort key values in a cursor, or None if the cursor is empty.

    Raise QueryError if the cursor is not valid.
    """
    if not text:
        return None
    parts = text.split("_")
    if len(parts) != len(order.keys):
        raise _build_cursor_error()
    return tuple(_parse_value(part, key) for part, key in zip(parts, order.keys, strict=True))


def _parse_value(text: str, key: SortKey) -> int | datetime:
    digits = text.removeprefix("n")
    size = parse_id(digits)
    if size is None or size > key.max_value:
        raise _build_cursor_error()
    number = size if digits == text else -size
    if not key.is_time:
        return number
    try:
        return _EPOCH + number * _MICROSECOND
    except OverflowError as error:
        raise _build_cursor_error() from error


def _build_cursor_error() -> QueryError:
    message = "This page of the list does not exist. Go to the first page."
    return QueryError(message, field="cursor")
