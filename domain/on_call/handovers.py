"""When a rotation is handed over: arithmetic on wall times, without a walk from its beginning.

Turns are numbered. Turn `n` begins at a wall time that the cadence computes from `n`, and ends
when the next one begins. Where clocks change, a turn is an hour longer or shorter.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from domain.time_zones import instant, wall_time, zone

_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)
#: More than a clock was ever moved by: Samoa left a whole day out in 2011.
_LARGEST_CHANGE = timedelta(hours=26)


class Unit(StrEnum):
    """The unit of a rotation's length."""

    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"


#: Of a turn, by its unit: about a year.
MOST: Mapping[Unit, int] = {Unit.HOURS: 1000, Unit.DAYS: 366, Unit.WEEKS: 53}


@dataclass(frozen=True, kw_only=True)
class Cadence:
    """How often, and at which wall time, a rotation is handed over."""

    unit: Unit
    #: Every so many hours, days or weeks.
    every: int = 1
    #: Of the hand-over; turns of hours are counted from it.
    at: time = time(9)
    #: Days of hand-over of weekly turns: 0 is Monday.
    weekdays: tuple[int, ...] = (0,)


class Turn(NamedTuple):
    """A turn of a rotation, by number; the first one is 0."""

    number: int
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Handovers:
    """The hand-overs of one rotation."""

    cadence: Cadence
    starts_on: date
    time_zone: str

    @cached_property
    def begins_at(self) -> datetime:
        """Return the moment from which somebody is on call."""
        return instant(datetime.combine(self.starts_on, self.cadence.at), zone(self.time_zone))

    def number_at(self, moment: datetime) -> int:
        """Return the number of the turn at a moment; negative before the beginning."""
        return _Reader(self).number_at(moment)

    def turns(self, start: datetime, end: datetime) -> Iterator[Turn]:
        """Yield the turns that touch a period, cut to it, in order."""
        begin = max(start, self.begins_at)
        if begin >= end:
            return
        known = _Reader(self).handovers(begin, end)
        for (moment, number), (following, _) in pairwise(known):
            if moment < end and following > begin:
                yield Turn(number, max(moment, begin), min(following, end))


class _Reader:
    """Computes hand-overs of one rotation, each once."""

    def __init__(self, handovers: Handovers) -> None:
        self._cadence, self._zone = handovers.cadence, zone(handovers.time_zone)
        cadence, day = handovers.cadence, handovers.starts_on
        begin = day - timedelta(days=day.weekday()) if cadence.unit is Unit.WEEKS else day
        self._anchor = datetime.combine(begin, cadence.at)
        self._starts: dict[int, datetime] = {}
        self._first = self._index_at(handovers.begins_at)

    def number_at(self, moment: datetime) -> int:
        """Return the number of the turn at a moment."""
        return self._index_at(moment) - self._first

    def handovers(self, start: datetime, end: datetime) -> list[tuple[datetime, int]]:
        """Return hand-overs with the numbers of their turns, from before a time to after it.

        Where a clock jumps, several may be at once, or in another order: the highest number counts.
        """
        lowest = self._by_wall_time(wall_time(start, self._zone)) - self._reach
        highest = self._by_wall_time(wall_time(end, self._zone)) + self._reach
        ordered = sorted((self._start(index), index) for index in range(lowest, highest + 1))
        found: dict[datetime, int] = {}
        last = lowest - 1
        for moment, index in ordered:
            if index > last:
                found[moment] = index - self._first
                last = index
        return list(found.items())

    def _index_at(self, moment: datetime) -> int:
        """Return the last turn that has begun."""
        highest = self._by_wall_time(wall_time(moment, self._zone)) + self._reach
        return next(
            index
            for index in range(highest, highest - 3 * self._reach, -1)
            if self._start(index) <= moment
        )

    @cached_property
    def _shortest(self) -> timedelta:
        cadence = self._cadence
        if cadence.unit is Unit.HOURS:
            return timedelta(hours=cadence.every)
        return _DAY * cadence.every if cadence.unit is Unit.DAYS else _DAY

    @cached_property
    def _reach(self) -> int:
        """So many turns, counted by wall time, a change of the clock can be off."""
        return _LARGEST_CHANGE // self._shortest + 1

    @cached_property
    def _cycle(self) -> timedelta:
        cadence = self._cadence
        if cadence.unit is Unit.WEEKS:
            return _WEEK * cadence.every
        return self._shortest

    @cached_property
    def _offsets(self) -> tuple[timedelta, ...]:
        """Of the hand-overs of a cycle from its beginning."""
        if self._cadence.unit is Unit.WEEKS:
            return tuple(_DAY * day for day in sorted(self._cadence.weekdays))
        return (timedelta(0),)

    def _by_wall_time(self, local: datetime) -> int:
        cycle, rest = divmod(local - self._anchor, self._cycle)
        return cycle * len(self._offsets) + bisect_right(self._offsets, rest) - 1

    def _start(self, index: int) -> datetime:
        found = self._starts.get(index)
        if found is None:
            cycle, position = divmod(index, len(self._offsets))
            local = self._anchor + cycle * self._cycle + self._offsets[position]
            found = self._starts[index] = instant(local, self._zone)
        return found
