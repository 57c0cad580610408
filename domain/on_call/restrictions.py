"""When a rotation is on call at all: times of day on some weekdays, by wall time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from domain.time_zones import instant, wall_time, zone

EVERY_DAY = tuple(range(7))
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Restriction:
    """From one time of day to another one; not after the first one means on the next day."""

    start: time
    end: time
    #: Days on which it begins: 0 is Monday.
    weekdays: tuple[int, ...] = EVERY_DAY


@dataclass(frozen=True, order=True)
class Period:
    """A time with its end, which is not part of it."""

    start: datetime
    end: datetime


def periods(
    restrictions: Sequence[Restriction], time_zone: str, within: Period
) -> tuple[Period, ...]:
    """Return the times that restrictions leave in a period: all of it without any.

    They are in order; those that touch are one.
    """
    if not restrictions:
        return (within,)
    found = sorted(
        Period(max(each.start, within.start), min(each.end, within.end))
        for each in _windows(restrictions, time_zone, within)
    )
    return tuple(_joined(each for each in found if each.start < each.end))


def _windows(
    restrictions: Sequence[Restriction], time_zone: str, within: Period
) -> Iterator[Period]:
    place = zone(time_zone)
    # Of the day before, because a time may reach over midnight; one more for changes of the clock.
    day = wall_time(within.start, place).date() - 2 * _DAY
    last = wall_time(within.end, place).date()
    while day <= last:
        for each in restrictions:
            if day.weekday() in each.weekdays:
                start, end = _wall_times(each, day)
                yield Period(instant(start, place), instant(end, place))
        day += _DAY


def _wall_times(each: Restriction, day: date) -> tuple[datetime, datetime]:
    end_day = day if each.end > each.start else day + _DAY
    return datetime.combine(day, each.start), datetime.combine(end_day, each.end)


def _joined(ordered: Iterator[Period]) -> Iterator[Period]:
    current = next(ordered, None)
    if current is None:
        return
    for each in ordered:
        if each.start <= current.end:
            current = Period(current.start, max(current.end, each.end))
        else:
            yield current
            current = each
    yield current
