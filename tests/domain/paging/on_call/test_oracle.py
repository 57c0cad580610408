"""Compares rotations with dateutil's recurrence rules, over years, time zones and clock changes."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from dateutil.rrule import DAILY, HOURLY, WEEKLY, rrule
from dateutil.tz import gettz, resolve_imaginary
from hypothesis import example, given
from hypothesis import strategies as st

from domain.paging.on_call.final_schedule import compute_spans
from domain.paging.on_call.schedule_plans import (
    EVERY_DAY,
    Cadence,
    Restriction,
    RotationPlan,
    SchedulePlan,
    TurnUnit,
)
from tests.support.wire.garbage import bounded

#: Time zones with half hours, and with changes in the south, at midnight, of half an hour, of a
#: day, and none.
ZONES = (
    *("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe"),
    *("Asia/Kathmandu", "Africa/Casablanca", "Pacific/Apia", "Asia/Beirut", "UTC"),
    "Antarctica/Casey",
)
FREQUENCIES = {TurnUnit.HOURS: HOURLY, TurnUnit.DAYS: DAILY, TurnUnit.WEEKS: WEEKLY}
LONG_AGO = datetime(1999, 1, 1, tzinfo=UTC)
WINDOW = timedelta(days=40)

days = st.dates(min_value=date(2001, 1, 1), max_value=date(2037, 12, 31))
times = st.times().map(lambda each: each.replace(second=0, microsecond=0))
weekdays = st.sets(st.integers(0, 6), min_size=1).map(lambda each: tuple(sorted(each)))
cadences = st.one_of(
    st.builds(Cadence, unit=st.just(TurnUnit.DAYS), every=st.integers(1, 10), at=times),
    st.builds(
        Cadence, unit=st.just(TurnUnit.WEEKS), every=st.integers(1, 4), at=times, weekdays=weekdays
    ),
    st.builds(Cadence, unit=st.just(TurnUnit.HOURS), every=st.integers(1, 60), at=times),
)


def moment_of(local: datetime, zone: str) -> datetime:
    """Return the UTC time of a local time, computed with dateutil's time zones."""
    aware: datetime = resolve_imaginary(local.replace(tzinfo=gettz(zone)))
    return aware.astimezone(UTC)


def expected_handoffs(plan: RotationPlan, end: datetime) -> list[tuple[datetime, int]]:
    """Return the times of handoffs up to an end, each with its number."""
    cadence, begin = plan.cadence, datetime.combine(plan.starts_on, plan.cadence.at)
    more = {"byweekday": cadence.weekdays} if cadence.unit is TurnUnit.WEEKS else {}
    rule = rrule(
        FREQUENCIES[cadence.unit],
        interval=cadence.every,
        dtstart=begin,
        until=end.replace(tzinfo=None) + timedelta(days=3),
        **more,
    )
    found = [moment_of(local, plan.time_zone) for local in rule]
    start = moment_of(begin, plan.time_zone)
    # A weekly rotation may begin on a day without a handoff, which starts turn 0.
    if not found or found[0] != start:
        found = [start, *found]
    return [(moment, number) for number, moment in enumerate(found)]


def expected_user(
    handoffs: Sequence[tuple[datetime, int]], moment: datetime, users: int
) -> int | None:
    """Return the user whose turn began with the last handoff."""
    return next((number % users for start, number in reversed(handoffs) if start <= moment), None)


@given(
    cadence=cadences,
    starts_on=days,
    zone=st.sampled_from(ZONES),
    users=st.integers(2, 5),
    hours=st.integers(0, 400 * 24),
)
@bounded(40)
# A day that does not exist, and hours and half hours that occur twice or not at all.
@example(Cadence(unit=TurnUnit.DAYS, at=time(9)), date(2011, 12, 20), "Pacific/Apia", 3, 0)
@example(
    Cadence(unit=TurnUnit.HOURS, every=1, at=time(0)), date(2011, 12, 20), "Pacific/Apia", 5, 0
)
@example(
    Cadence(unit=TurnUnit.HOURS, every=8, at=time(1)), date(2011, 12, 20), "Pacific/Apia", 2, 0
)
@example(Cadence(unit=TurnUnit.DAYS, at=time(2, 30)), date(2026, 3, 10), "Europe/Berlin", 2, 0)
@example(
    Cadence(unit=TurnUnit.HOURS, every=1, at=time(0, 30)), date(2026, 10, 10), "Europe/Berlin", 2, 0
)
@example(
    Cadence(unit=TurnUnit.DAYS, at=time(2, 15)), date(2026, 3, 30), "Australia/Lord_Howe", 2, 0
)
@example(Cadence(unit=TurnUnit.DAYS, at=time(0)), date(2018, 10, 20), "America/Sao_Paulo", 2, 0)
# Three hours occur twice, and one of them is the first or the last hour of the request.
@example(Cadence(unit=TurnUnit.HOURS, every=1), date(2010, 3, 1), "Antarctica/Casey", 5, 87)
@example(Cadence(unit=TurnUnit.HOURS, every=1), date(2010, 1, 20), "Antarctica/Casey", 5, 88)
def test_turns_match_the_recurrence_rule(
    cadence: Cadence, starts_on: date, zone: str, users: int, hours: int
) -> None:
    plan = RotationPlan(
        id=1,
        name="any",
        layer=1,
        cadence=cadence,
        starts_on=starts_on,
        time_zone=zone,
        user_ids=tuple(range(users)),
        valid_from=LONG_AGO,
    )
    ahead = hours % 700 if cadence.unit is TurnUnit.HOURS else hours  # Limited for speed.
    start = datetime.combine(starts_on, time(), UTC) + timedelta(hours=ahead)
    end = start + WINDOW
    handoffs = expected_handoffs(plan, end)
    found = compute_spans(SchedulePlan(schedule_id=1, rotations=(plan,)), start, end)
    assert (found[0].start, found[-1].end) == (start, end)
    assert all(one.end == other.start for one, other in pairwise(found))
    for span in found:
        inside = {span.start, span.start + (span.end - span.start) / 2, span.end - RESOLUTION}
        inside |= {each for each, _ in handoffs if span.start <= each < span.end}
        for moment in inside:
            user = expected_user(handoffs, moment, users)
            assert list(span.user_ids) == ([] if user is None else [user]), moment


RESOLUTION = timedelta(microseconds=1)


@bounded(40)
@given(
    restrictions=st.lists(
        st.builds(
            Restriction,
            start=times,
            end=times,
            weekdays=weekdays | st.just(EVERY_DAY),
        ),
        min_size=1,
        max_size=3,
    ),
    day=days,
    zone=st.sampled_from(ZONES),
    minutes=st.lists(st.integers(0, 20 * 24 * 60), min_size=20, max_size=20),
)
def test_restrictions_apply_in_local_time(
    restrictions: list[Restriction], day: date, zone: str, minutes: list[int]
) -> None:
    plan = RotationPlan(
        id=1,
        name="any",
        layer=1,
        cadence=Cadence(unit=TurnUnit.WEEKS),
        starts_on=date(2000, 1, 3),
        time_zone=zone,
        user_ids=(7,),
        restrictions=tuple(restrictions),
        valid_from=LONG_AGO,
    )
    start = datetime.combine(day, time(), UTC)
    found = compute_spans(
        SchedulePlan(schedule_id=1, rotations=(plan,)), start, start + timedelta(days=20)
    )
    starts = [span.start for span in found]
    for minute in minutes:
        moment = start + timedelta(minutes=minute)
        if moment >= found[-1].end or is_near_a_change(moment, zone):
            continue
        span = found[bisect_right(starts, moment) - 1]
        local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        assert bool(span.duties) == any(is_within(each, local) for each in restrictions), local


def is_within(each: Restriction, local: datetime) -> bool:
    """Return whether a local time is in a restriction, which may have begun the day before."""
    overnight = each.end <= each.start
    yesterday = (local.weekday() - 1) % 7
    if overnight:
        began_today = local.weekday() in each.weekdays and local.time() >= each.start
        return began_today or (yesterday in each.weekdays and local.time() < each.end)
    return local.weekday() in each.weekdays and each.start <= local.time() < each.end


def is_near_a_change(moment: datetime, zone: str) -> bool:
    """Return whether the clock changes within a day: other tests cover these times."""
    place, near = ZoneInfo(zone), timedelta(days=1, hours=2)
    offsets = {(moment + near * side).astimezone(place).utcoffset() for side in (-1, 0, 1)}
    return len(offsets) > 1
