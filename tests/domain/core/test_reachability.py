"""Times without marks of web servers, in which no request could arrive."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.core.hosts import SILENCE, Marks, Unreachable, ended_by

NOW = datetime(2026, 3, 1, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    "marks",
    [
        Marks(own=None),
        Marks(own=None, began_at=NOW),
        Marks(own=NOW - SILENCE),
        Marks(own=NOW - HOUR, others=[NOW - SILENCE]),
        Marks(own=NOW, began_at=NOW),
        # Clocks that are or were wrong.
        Marks(own=NOW + HOUR),
        Marks(own=NOW + HOUR, began_at=NOW - SECOND),
        Marks(own=NOW - SECOND, began_at=NOW + HOUR),
        Marks(own=None, others=[NOW + HOUR], began_at=NOW),
        Marks(own=NOW - HOUR, others=[NOW + HOUR]),
    ],
)
def test_marks_without_an_interruption(marks: Marks) -> None:
    assert ended_by(marks, NOW) is None


@pytest.mark.parametrize(
    ("marks", "length"),
    [
        (Marks(own=NOW - SILENCE - SECOND), SILENCE + SECOND),
        (Marks(own=NOW - 2 * HOUR, others=[NOW - HOUR]), HOUR),
        (Marks(own=NOW - 2 * SECOND, began_at=NOW - SECOND), 2 * SECOND),
        (Marks(own=None, others=[NOW - HOUR], began_at=NOW), HOUR),
    ],
)
def test_a_time_without_a_receiver_begins_with_the_last_mark(
    marks: Marks, length: timedelta
) -> None:
    assert ended_by(marks, NOW) == Unreachable(began_at=NOW - length, ended_at=NOW)
