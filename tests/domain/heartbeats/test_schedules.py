"""Schedules of heartbeats: intervals, cron expressions, and clock changes of time zones."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.core.errors import InvalidError
from domain.heartbeats.states import HeartbeatSchedule

MINUTE = timedelta(minutes=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_an_interval_counts_from_the_ping() -> None:
    schedule = HeartbeatSchedule(every=5 * MINUTE, grace=MINUTE)
    assert schedule.get_expected_time(at("2026-03-01T12:00:30")) == at("2026-03-01T12:05:30")
    assert schedule.get_due_time(at("2026-03-01T12:00:30")) == at("2026-03-01T12:06:30")


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("30 3 * * *", "UTC", "2026-03-01T03:29:59", "2026-03-01T03:30:00"),
        ("30 3 * * *", "UTC", "2026-03-01T03:30:00", "2026-03-02T03:30:00"),
        ("30 3 * * *", "Europe/Berlin", "2026-01-10T12:00:00", "2026-01-11T02:30:00"),
        ("30 3 * * *", "Europe/Berlin", "2026-07-10T12:00:00", "2026-07-11T01:30:00"),
        # 2:30 does not exist that day: cron runs the job after the clock was put forward.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00", "2026-03-29T01:00:00"),
        # 2:30 exists twice: cron runs the job once, the first time.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00", "2026-10-25T00:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00", "2026-10-26T01:30:00"),
        ("0 9 * * mon-fri", "America/New_York", "2026-11-21T00:00:00", "2026-11-23T14:00:00"),
        ("0 0 29 2 *", "UTC", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
    ],
)
def test_a_cron_expression_is_evaluated_in_its_zone(
    cron: str, zone: str, after: str, expected: str
) -> None:
    schedule = HeartbeatSchedule(cron=cron, time_zone=zone, grace=MINUTE)
    assert schedule.get_expected_time(at(after)) == at(expected)


@pytest.mark.parametrize("every", ["1", "31622400"])
def test_the_shortest_and_the_longest_interval_are_accepted(every: str) -> None:
    HeartbeatSchedule(every=timedelta(seconds=int(every)), grace=timedelta(0))


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("every", {"every": timedelta(0)}),
        ("every", {"every": timedelta(milliseconds=1500)}),
        ("every", {"every": timedelta(days=367)}),
        ("every", {}),
        ("every", {"every": MINUTE, "cron": "* * * * *"}),
        ("grace", {"every": MINUTE, "grace": timedelta(seconds=-1)}),
        ("grace", {"every": MINUTE, "grace": timedelta(days=367)}),
        ("cron", {"cron": "* * * *"}),
        ("cron", {"cron": "* * * * * *"}),
        ("cron", {"cron": "61 * * * *"}),
        ("cron", {"cron": "0 0 30 2 *"}),
        ("cron", {"cron": "0 " * 60}),
        ("cron", {"cron": "٣ * * * *"}),
        ("cron", {"cron": "a\x00 b c d e"}),
    ],
)
def test_impossible_schedules_are_rejected_with_the_field(
    field: str, given: dict[str, timedelta | str]
) -> None:
    with pytest.raises(InvalidError) as refused:
        HeartbeatSchedule(**{"grace": MINUTE, **given})  # type: ignore[arg-type]
    assert refused.value.field == field
    assert str(refused.value)
