"""Times without marks of web servers, in which no request could arrive."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.core.hosts import (
    UNREACHABLE_AFTER,
    ServerHeartbeats,
    UnreachablePeriod,
    find_ended_unreachable_period,
)

NOW = datetime(2026, 3, 1, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    "marks",
    [
        ServerHeartbeats(own=None),
        ServerHeartbeats(own=None, began_at=NOW),
        ServerHeartbeats(own=NOW - UNREACHABLE_AFTER),
        ServerHeartbeats(own=NOW - HOUR, others=[NOW - UNREACHABLE_AFTER]),
        ServerHeartbeats(own=NOW, began_at=NOW),
        # Clocks that are or were wrong.
        ServerHeartbeats(own=NOW + HOUR),
        ServerHeartbeats(own=NOW + HOUR, began_at=NOW - SECOND),
        ServerHeartbeats(own=NOW - SECOND, began_at=NOW + HOUR),
        ServerHeartbeats(own=None, others=[NOW + HOUR], began_at=NOW),
        ServerHeartbeats(own=NOW - HOUR, others=[NOW + HOUR]),
    ],
)
def test_marks_without_an_interruption(marks: ServerHeartbeats) -> None:
    assert find_ended_unreachable_period(marks, NOW) is None


@pytest.mark.parametrize(
    ("marks", "length"),
    [
        (ServerHeartbeats(own=NOW - UNREACHABLE_AFTER - SECOND), UNREACHABLE_AFTER + SECOND),
        (ServerHeartbeats(own=NOW - 2 * HOUR, others=[NOW - HOUR]), HOUR),
        (ServerHeartbeats(own=NOW - 2 * SECOND, began_at=NOW - SECOND), 2 * SECOND),
        (ServerHeartbeats(own=None, others=[NOW - HOUR], began_at=NOW), HOUR),
    ],
)
def test_a_time_without_a_receiver_begins_with_the_last_mark(
    marks: ServerHeartbeats, length: timedelta
) -> None:
    assert find_ended_unreachable_period(marks, NOW) == UnreachablePeriod(
        began_at=NOW - length, ended_at=NOW
    )
