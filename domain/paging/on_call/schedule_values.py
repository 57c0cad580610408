"""Schedules as values without a database, from which the users on call are computed."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from domain.core.time_zones import instant, wall_time, zone

EVERY_DAY = tuple(range(7))
_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)
#: Upper limit of clock changes. Samoa skipped a whole day in 2011.
_LARGEST_CHANGE = timedelta(hours=26)


@dataclass(frozen=True, kw_only=True)
class Restriction:
    """A daily period; it ends on the next day if `end` is not after `start`."""

    start: time
    end: time
    #: Weekdays on which it starts: 0 is Monday.
    weekdays: tuple[int, ...] = EVERY_DAY


@dataclass(frozen=True, order=True)
class Period:
    """A period of time; the end is excluded."""

    start: datetime
    end: datetime


def periods(
    restrictions: Sequence[Restriction], time_zone: str, within: Period
) -> tuple[Period, ...]:
    """Return the periods within `within` that restrictions allow, or `within` without restrictions.

    The periods are in order, and adjacent periods are joined.
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
    # A period may continue after midnight, so start a day earlier, and one more for clock changes.
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


class Unit(StrEnum):
    """The unit of the length of turns."""

    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"


#: Maximum length of a turn by unit, which is about a year.
MOST: Mapping[Unit, int] = {Unit.HOURS: 1000, Unit.DAYS: 366, Unit.WEEKS: 53}


@dataclass(frozen=True, kw_only=True)
class Cadence:
    """The handoff interval of a rotation, and the local time of its handoffs."""

    unit: Unit
    #: Number of units between two handoffs.
    every: int = 1
    #: Time of the handoff. Turns in hours are counted from this time.
    at: time = time(9)
    #: Weekdays of the handoffs of weekly turns: 0 is Monday.
    weekdays: tuple[int, ...] = (0,)


class Turn(NamedTuple):
    """A turn of a rotation; the first turn has the number 0."""

    number: int
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Handovers:
    """The handoffs of a rotation."""

    cadence: Cadence
    starts_on: date
    time_zone: str

    @cached_property
    def begins_at(self) -> datetime:
        """Return the start of the first turn."""
        return instant(datetime.combine(self.starts_on, self.cadence.at), zone(self.time_zone))

    def number_at(self, moment: datetime) -> int:
        """Return the number of the turn at a given time; negative before the start."""
        return _Reader(self).number_at(moment)

    def turns(self, start: datetime, end: datetime) -> Iterator[Turn]:
        """Yield the turns that overlap a period in order, cut to the period."""
        begin = max(start, self.begins_at)
        if begin >= end:
            return
        known = _Reader(self).handovers(begin, end)
        for (moment, number), (following, _) in pairwise(known):
            if moment < end and following > begin:
                yield Turn(number, max(moment, begin), min(following, end))


class _Reader:
    """Computes the handoffs of a rotation and caches them."""

    def __init__(self, handovers: Handovers) -> None:
        self._cadence, self._zone = handovers.cadence, zone(handovers.time_zone)
        cadence, day = handovers.cadence, handovers.starts_on
        begin = day - timedelta(days=day.weekday()) if cadence.unit is Unit.WEEKS else day
        self._anchor = datetime.combine(begin, cadence.at)
        self._starts: dict[int, datetime] = {}
        self._first = self._index_at(handovers.begins_at)

    def number_at(self, moment: datetime) -> int:
        """Return the number of the turn at a given time."""
        return self._index_at(moment) - self._first

    def handovers(self, start: datetime, end: datetime) -> list[tuple[datetime, int]]:
        """Return the handoffs from before `start` to after `end`, with the numbers of their turns.

        Clock changes can make several handoffs coincide or change their order; the highest number
        applies.
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
        """Return the index of the last turn that has started."""
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
        """Return the number of turns by which a clock change can shift the result."""
        return _LARGEST_CHANGE // self._shortest + 1

    @cached_property
    def _cycle(self) -> timedelta:
        cadence = self._cadence
        if cadence.unit is Unit.WEEKS:
            return _WEEK * cadence.every
        return self._shortest

    @cached_property
    def _offsets(self) -> tuple[timedelta, ...]:
        """Return the offsets of the handoffs from the start of a cycle."""
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


@dataclass(frozen=True, kw_only=True)
class RotationPlan:
    """A version of a rotation that applies for a period; each change creates a new version."""

    id: int
    name: str
    #: Layer of the rotation. The highest layer with a user on call applies, with all its rotations.
    layer: int
    cadence: Cadence
    starts_on: date
    time_zone: str
    #: Users in the order of their turns.
    user_ids: tuple[int, ...]
    #: Index of the user who has turn 0.
    first_turn: int = 0
    restrictions: tuple[Restriction, ...] = ()
    valid_from: datetime
    #: End of validity. None while the rotation is in force.
    valid_until: datetime | None = None

    @property
    def handovers(self) -> Handovers:
        """Return the handoffs of the rotation."""
        return Handovers(self.cadence, self.starts_on, self.time_zone)

    def user_at(self, turn: int) -> int:
        """Return the user who has a turn."""
        return self.user_ids[(turn + self.first_turn) % len(self.user_ids)]


@dataclass(frozen=True, kw_only=True)
class Override:
    """A user who is on call instead of everyone or one other user, or in addition to others."""

    id: int
    user_id: int
    during: Period
    #: User whose duties are taken. None for the duties of everyone, or of nobody if `in_addition`.
    instead_of_id: int | None = None
    in_addition: bool = False


@dataclass(frozen=True, kw_only=True)
class Stint:
    """A period of a user."""

    user_id: int
    during: Period


@dataclass(frozen=True, kw_only=True)
class Swap:
    """Two periods of two users, which the users exchange."""

    id: int
    first: Stint
    second: Stint


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All the data that determines who is on call in a schedule."""

    schedule_id: int
    rotations: tuple[RotationPlan, ...] = ()
    #: Overrides in the order of creation, like the swaps.
    overrides: tuple[Override, ...] = ()
    swaps: tuple[Swap, ...] = ()
    #: Periods in which users have a role and an account, so they can be on call. Users who are not
    #: included can always be on call.
    times: Mapping[int, Sequence[Period]] = field(default_factory=lambda: MappingProxyType({}))

    def has(self, user_id: int, moment: datetime) -> bool:
        """Return whether a user can be on call at a given time."""
        times = self.times.get(user_id)
        return times is None or any(each.start <= moment < each.end for each in times)
