"""Tests of the number of rows in a transaction, on which other writers of SQLite wait."""

import pytest

from web.jobs.batch_size import BatchSize
from web.settings.reader import Settings


def list_sizes(settings: Settings, *, seconds_per_row: float, queued: int) -> list[int]:
    """Handle queued rows, and return the number of rows in each transaction."""
    size, handled = BatchSize(settings, most=200), list[int]()
    while queued:
        handled.append(min(size.rows, queued))
        queued -= handled[-1]
        size.record_transaction(handled[-1], handled[-1] * seconds_per_row)
    return handled


@pytest.mark.one_database("sqlite")
def test_transactions_on_sqlite_grow_while_they_are_short(settings: Settings) -> None:
    fast = list_sizes(settings, seconds_per_row=0.000_1, queued=1_000)
    assert fast[:7] == [2, 4, 8, 16, 32, 64, 128]
    assert max(fast) == 200
    slow = list_sizes(settings, seconds_per_row=0.01, queued=100)
    assert slow[:3] == [2, 2, 2]
    assert list_sizes(settings, seconds_per_row=3, queued=5) == [2, 1, 1, 1]


@pytest.mark.one_database("sqlite")
def test_rows_after_a_break_begin_with_a_short_transaction(settings: Settings) -> None:
    size = BatchSize(settings, most=200)
    for rows in (2, 4):
        size.record_transaction(rows, 0.001)
    assert size.rows == 8
    size.record_transaction(3, 0.001)  # nothing is left
    assert size.rows == 2


@pytest.mark.one_database("postgres")
def test_transactions_on_postgres_keep_their_size(settings: Settings) -> None:
    assert set(list_sizes(settings, seconds_per_row=3, queued=600)) == {200}
