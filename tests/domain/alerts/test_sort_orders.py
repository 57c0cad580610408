"""Cursors that point to a row in a sort order."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.alerts.listing.sort_orders import (
    NEWEST_FIRST,
    SORT_ORDERS,
    format_sort_cursor,
    parse_sort_cursor,
)
from domain.core.errors import QueryError


def test_a_cursor_is_decoded_to_the_same_values() -> None:
    before_1970 = datetime(1967, 3, 1, 2, 3, 4, 5, tzinfo=UTC)
    for name, values in {
        "started": (before_1970, 7),
        "severity": (5, datetime(2026, 11, 21, tzinfo=UTC), 2**63 - 1),
        "events": (2**31 - 1, 1),
    }.items():
        assert parse_sort_cursor(format_sort_cursor(values), SORT_ORDERS[name]) == values


def test_an_empty_cursor_is_the_beginning() -> None:
    assert parse_sort_cursor(None, NEWEST_FIRST) is None
    assert parse_sort_cursor("", NEWEST_FIRST) is None


@pytest.mark.parametrize(
    "cursor",
    [
        *("-1", "x", "1", "9" * 30, "1;DROP TABLE alerts", "٣_1", "\x00", "_", "1_1_1", "1_n"),
        *("1__1", f"{'9' * 18}_1", f"1_{'9' * 19}"),
    ],
)
def test_a_forged_cursor_is_rejected(cursor: str) -> None:
    with pytest.raises(QueryError):
        parse_sort_cursor(cursor, NEWEST_FIRST)


def test_cursors_beyond_the_largest_values_are_rejected() -> None:
    day = timedelta(days=1) // timedelta(microseconds=1)
    last = (datetime(9999, 12, 31, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days * day
    assert parse_sort_cursor(f"{last}_{2**63 - 1}", NEWEST_FIRST)
    for beyond in (f"{last + day}_1", f"1_{2**63}"):
        with pytest.raises(QueryError):
            parse_sort_cursor(beyond, NEWEST_FIRST)
    assert parse_sort_cursor(f"{2**31 - 1}_1", SORT_ORDERS["events"])
    with pytest.raises(QueryError):
        parse_sort_cursor(f"{2**31}_1", SORT_ORDERS["events"])
