"""Start and end of maintenance windows, also when clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.core.errors import InvalidError
from domain.paging.maintenance_windows.occurrences import WindowTimes
from domain.paging.maintenance_windows.recurrence import parse_recurrence_rule
from tests.support.wire.garbage import bounded

HOUR = timedelta(hours=1)
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def window(start: str, hours: float, rule: str = "", zone: str = "Europe/Berlin") -> WindowTimes:
    return WindowTimes(
        local_start=datetime.fromisoformat(start),
        length=hours * HOUR,
        time_zone=zone,
        recurrence=parse_recurrence_rule(rule) if rule else None,
    )


def shown(times: WindowTimes, moment: datetime, count: int) -> list[str]:
    found = islice(times.find_occurrences_ending_after(moment), count)
    return [f"{each.starts_at:%d.%H:%M}-{each.ends_at:%H:%M}" for each in found]


def test_a_weekly_window_keeps_its_local_time_when_clocks_change() -> None:
    times = window("2026-03-22T02:00", 2, "FREQ=WEEKLY")
    # 02:00 does not exist on the 29th: it is 03:00 in summer time.
    assert shown(times, LONG_AGO, 3) == ["22.01:00-03:00", "29.01:00-02:00", "05.00:00-02:00"]


def test_an_hour_that_occurs_twice_is_covered_both_times() -> None:
    times = window("2026-10-24T02:00", 1, "FREQ=DAILY")
    # On the 25th, it lasts from 02:00 in summer time to 03:00 in winter time.
    assert shown(times, LONG_AGO, 3) == ["24.00:00-01:00", "25.00:00-02:00", "26.01:00-02:00"]


def test_a_window_that_begins_in_the_missing_hour_does_not_end_before() -> None:
    (found,) = window("2026-03-29T02:50", 1 / 3).find_occurrences_ending_after(LONG_AGO)
    assert found.ends_at - found.starts_at == HOUR / 3


def test_the_night_of_the_change_is_an_hour_longer() -> None:
    (found,) = window("2026-10-24T22:00", 8).find_occurrences_ending_after(LONG_AGO)
    assert found.ends_at - found.starts_at == 9 * HOUR
    assert found.ends_at.astimezone(BERLIN).hour == 6


def test_a_current_window_is_found_until_it_ends() -> None:
    times = window("2026-12-06T23:00", 4, "FREQ=WEEKLY;BYDAY=SU", "UTC")
    begin = datetime(2026, 12, 13, 23, tzinfo=UTC)
    assert times.find_occurrence_at(begin - timedelta(seconds=1)) is None
    for moment in (begin, begin + 4 * HOUR - timedelta(seconds=1)):
        found = times.find_occurrence_at(moment)
        assert found is not None
        assert (found.starts_at, found.ends_at) == (begin, begin + 4 * HOUR)
    assert times.find_occurrence_at(begin + 4 * HOUR) is None


def test_the_first_and_last_moment_are_known() -> None:
    once = window("2026-12-06T02:00", 2, "", "UTC")
    assert once.first_starts_at == datetime(2026, 12, 6, 2, tzinfo=UTC)
    assert once.last_ends_at == datetime(2026, 12, 6, 4, tzinfo=UTC)
    sundays = window("2026-12-01T02:00", 2, "FREQ=WEEKLY;BYDAY=SU;UNTIL=20261220", "UTC")
    assert sundays.first_starts_at == datetime(2026, 12, 6, 2, tzinfo=UTC)
    assert sundays.last_ends_at is not None
    assert sundays.last_ends_at >= list(sundays.find_occurrences_ending_after(LONG_AGO))[-1].ends_at
    assert window("2026-12-01T02:00", 2, "FREQ=DAILY").last_ends_at is None


@pytest.mark.parametrize(
    ("times", "field"),
    [
        (window("1999-12-31T23:00", 1), "starts_at"),
        (window("2100-01-01T00:00", 1), "starts_at"),
        (window("2026-12-01T00:00", 0), "duration"),
        (window("2026-12-01T00:00", 169), "duration"),
        (window("2026-12-01T00:00", 24.5, "FREQ=DAILY"), "duration"),
        (window("2026-12-01T00:00", 25, "FREQ=WEEKLY;BYDAY=SA,SU"), "duration"),
    ],
)
def test_times_out_of_range_and_windows_without_an_end_are_rejected(
    times: WindowTimes, field: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        times.check_times()
    assert refused.value.field == field


def test_a_window_that_never_occurs_is_rejected() -> None:
    with pytest.raises(InvalidError, match="never occurs"):
        _ = window("2026-12-10T02:00", 2, "FREQ=DAILY;UNTIL=20261201").first_starts_at


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


@pytest.mark.long
@bounded(40)
@given(
    zone=st.sampled_from(ZONES),
    rule=st.sampled_from(["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SA,SU", "FREQ=MONTHLY;BYDAY=-1SU"]),
    minutes=st.integers(0, 1439),
    length=st.integers(1, 1440),
    moment=st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_occurrences_are_in_order_and_at_their_local_time(
    zone: str, rule: str, minutes: int, length: int, moment: datetime
) -> None:
    start = datetime(2025, 6, 1) + timedelta(minutes=minutes)  # noqa: DTZ001 - local
    times = WindowTimes(
        local_start=start,
        length=timedelta(minutes=length),
        time_zone=zone,
        recurrence=parse_recurrence_rule(rule),
    )
    place = ZoneInfo(zone)
    found = list(islice(times.find_occurrences_ending_after(moment), 40))
    assert len(found) == 40
    assert found[0].ends_at > moment
    for each, following in pairwise(found):
        assert each.starts_at < each.ends_at
        assert each.starts_at < following.starts_at
        local = each.starts_at.astimezone(place)
        # A start in the hour that does not exist is later by the clock change.
        exists = local.replace(tzinfo=None) - local.replace(tzinfo=None).replace(
            hour=start.hour, minute=start.minute
        )
        assert exists in {timedelta(), HOUR, HOUR / 2}
        in_force = times.find_occurrence_at(each.starts_at)
        assert in_force is not None
        assert in_force.starts_at <= each.starts_at
