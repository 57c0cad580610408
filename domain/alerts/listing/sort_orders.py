"""Sort orders of alert lists, and cursors that mark a position in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row, Select, literal, tuple_
from sqlalchemy.sql import operators

from domain.alerts.listing.filters import severity_order
from domain.core.database.paging import LARGEST_ID, Page, parse_id
from domain.core.errors import QueryError
from models import Alert

Values = tuple[int | datetime, ...]
Item = TypeVar("Item")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_COUNT = 2**31 - 1
_LARGEST_RANK = 2**15 - 1


@dataclass(frozen=True)
class SortKey:
    """A value that alerts are sorted by."""

    name: str
    column: ColumnElement[Any]
    is_time: bool = False
    largest: int = LARGEST_ID


_ID = SortKey("id", Alert.id.expression)
_STARTED = SortKey("started_at", Alert.started_at.expression, is_time=True)


@dataclass(frozen=True)
class SortOrder:
    """A sort order. Its keys are all ascending or all descending, and the last key is the ID."""

    name: str
    label: str
    keys: tuple[SortKey, ...]
    is_descending: bool = True
    #: True if only the newest alerts of each status are sorted, since no index has this order.
    is_among_newest: bool = False

    @property
    def is_by_start(self) -> bool:
        """True if the index for all statuses has this order."""
        return self.keys == (_STARTED, _ID)

    def values_of(self, row: Row[Any]) -> Values:
        """Return the values of the sort keys in a row."""
        return tuple(getattr(row, f"key_{key.name}") for key in self.keys)


SORT_ORDERS = {
    order.name: order
    for order in (
        SortOrder("started", "Newest", (_STARTED, _ID)),
        SortOrder("oldest", "Oldest", (_STARTED, _ID), is_descending=False),
        SortOrder(
            "severity",
            "Severity",
            (SortKey("urgency", severity_order(), largest=_LARGEST_RANK), _STARTED, _ID),
        ),
        SortOrder(
            "last_event",
            "Last event",
            (SortKey("last_event_at", Alert.last_event_at.expression, is_time=True), _ID),
            is_among_newest=True,
        ),
        SortOrder(
            "events",
            "Most events",
            (SortKey("events", Alert.events.expression, largest=_LARGEST_COUNT), _ID),
            is_among_newest=True,
        ),
    )
}
NEWEST = SORT_ORDERS["started"]


@dataclass(frozen=True, kw_only=True)
class ListSlice:
    """A page of a list: the rows after or before a position in its order."""

    size: int
    order: SortOrder
    following: Values | None = None
    preceding: Values | None = None

    @property
    def is_backwards(self) -> bool:
        """True if the page is read from its last row to its first."""
        return self.preceding is not None

    def cut(
        self, columns: Sequence[ColumnElement[Any]], found: Select[*tuple[Any, ...]]
    ) -> Select[*tuple[Any, ...]]:
        """Limit a query to the rows of the page, plus one row that shows whether there are more."""
        order, backwards = self.order, self.is_backwards
        position = self.preceding if backwards else self.following
        if position is not None:
            found = found.where(_beyond(columns, position, order=order, backwards=backwards))
        return found.order_by(*sorted_by(columns, order=order, backwards=backwards)).limit(
            self.size + 1
        )

    def page_of(self, found: Sequence[tuple[Item, Values]]) -> Page[Item]:
        """Return the page for the rows of a limited query, which include their sort key values."""
        is_more, rows = len(found) > self.size, found[: self.size]
        if self.is_backwards:
            rows = rows[::-1]
        has_next = is_more or self.is_backwards
        has_previous = is_more if self.is_backwards else self.following is not None
        return Page(
            items=tuple(item for item, _ in rows),
            next_before=write_cursor(rows[-1][1]) if rows and has_next else None,
            previous_after=write_cursor(rows[0][1]) if rows and has_previous else None,
        )


@dataclass(frozen=True, kw_only=True)
class AlertSlice(ListSlice):
    """A page of a list of alerts."""

    order: SortOrder = NEWEST


def _beyond(
    columns: Sequence[ColumnElement[Any]], values: Values, *, order: SortOrder, backwards: bool
) -> ColumnElement[bool]:
    given = [literal(value, column.type) for column, value in zip(columns, values, strict=True)]
    compare = operators.lt if order.is_descending is not backwards else operators.gt
    found: ColumnElement[bool] = compare(tuple_(*columns), tuple_(*given))
    return found


def sorted_by(
    columns: Sequence[ColumnElement[Any]], *, order: SortOrder, backwards: bool
) -> list[ColumnElement[Any]]:
    """Return the ORDER BY expressions of a sort order."""
    if order.is_descending is not backwards:
        return [column.desc() for column in columns]
    return [column.asc() for column in columns]


def write_cursor(values: Values) -> str:
    """Return a cursor for URLs that contains the sort key values of a row."""
    return "_".join(map(_write, values))


def _write(value: int | datetime) -> str:
    number = (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value
    return f"n{-number}" if number < 0 else str(number)


def read_cursor(text: str | None, order: SortOrder) -> Values | None:
    """Return the sort key values in a cursor, or None if it is empty.

    Raise QueryError if the cursor is not valid.
    """
    if not text:
        return None
    parts = text.split("_")
    if len(parts) != len(order.keys):
        raise _malformed_cursor()
    return tuple(_read(part, key) for part, key in zip(parts, order.keys, strict=True))


def _read(text: str, key: SortKey) -> int | datetime:
    digits = text.removeprefix("n")
    size = parse_id(digits)
    if size is None or size > key.largest:
        raise _malformed_cursor()
    number = size if digits == text else -size
    if not key.is_time:
        return number
    try:
        return _EPOCH + number * _MICROSECOND
    except OverflowError as error:
        raise _malformed_cursor() from error


def _malformed_cursor() -> QueryError:
    message = "This page of the list does not exist. Go to the first page."
    return QueryError(message, field="cursor")
