"""Times of the week as restrictions, which begin on some weekdays and last at most a day."""

from collections.abc import Iterable
from datetime import time, timedelta

from domain.on_call.restrictions import Restriction

_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)


def week_time(start: timedelta, length: timedelta) -> tuple[Restriction, ...]:
    """Return a time that begins so long after Monday 00:00, in parts of at most a day.

    A whole week, or more, is no restriction.
    """
    if length >= _WEEK:
        return ()
    parts: list[Restriction] = []
    position, end = start % _WEEK, start % _WEEK + length
    while position < end:
        day, begins = divmod(position, _DAY)
        # At midnight, or a day later at the same time if that ends it.
        until = min(end, (day + 1) * _DAY)
        parts.append(
            Restriction(start=_clock(begins), end=_clock(until % _DAY), weekdays=(day % 7,))
        )
        position = until
    return tuple(parts)


def daily_time(start: time, length: timedelta, weekdays: tuple[int, ...]) -> Restriction:
    """Return a time of some days that lasts at most a day."""
    end = _clock((since_monday(0, start) + length) % _DAY)
    return Restriction(start=start, end=end, weekdays=weekdays)


def since_monday(weekday: int, at: time) -> timedelta:
    """Return how long after Monday 00:00 a time of the week is."""
    return timedelta(days=weekday, hours=at.hour, minutes=at.minute, seconds=at.second)


def _clock(after_midnight: timedelta) -> time:
    minutes, seconds = divmod(int(after_midnight.total_seconds()), 60)
    return time(*divmod(minutes, 60), seconds)


def merged(found: Iterable[Restriction]) -> tuple[Restriction, ...]:
    """Return the same times with one restriction for each time of day."""
    days: dict[tuple[time, time], set[int]] = {}
    for each in found:
        days.setdefault((each.start, each.end), set()).update(each.weekdays)
    return tuple(
        Restriction(start=start, end=end, weekdays=tuple(sorted(on)))
        for (start, end), on in days.items()
    )
