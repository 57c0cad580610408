"""Immutable plans of schedules, from which the users on call are computed without a database."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone

EVERY_DAY = tuple(range(7))
_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)
#: Maximum size of a clock change. Samoa skipped a whole day in 2011.
_MAX_CLOCK_CHANGE = timedelta(hours=26)


@dataclass(frozen=True, kw_only=True)
class Restriction:
    """A daily period, which ends on the next day if `end` is not after `start`."""

    start: time
    end: time
    #: Weekdays on which the period starts: 0 is Monday.
    weekdays: tuple[int, ...] = EVERY_DAY


@dataclass(frozen=True, order=True)
class Period:
    """A period of time, which does not include its end."""

    start: datetime
    end: datetime


def find_allowed_periods(
    restrictions: Sequence[Restriction], time_zone: str, period: Period
) -> tuple[Period, ...]:
    """Return the parts of a period that restrictions allow.

    Without restrictions, the whole period is returned. The periods are in order, and adjacent
    periods are joined.
    """
    if not restrictions:
        return (period,)
    found = sorted(
        Period(max(each.start, period.start), min(each.end, period.end))
        for each in _find_windows(restrictions, time_zone, period)
    )
    return tuple(_join_periods(each for each in found if each.start < each.end))


def _find_windows(
    restrictions: Sequence[Restriction], time_zone: str, period: Period
) -> Iterator[Period]:
    place = get_zone(time_zone)
    # Start one day earlier because restrictions may continue after midnight, and another day
    # earlier because of clock changes.
    day = convert_to_local(period.start, place).date() - 2 * _DAY
    last = convert_to_local(period.end, place).date()
    while day <= last:
        for each in restrictions:
            if day.weekday() in each.weekdays:
                start, end = _get_wall_times(each, day)
                yield Period(convert_to_utc(start, place), convert_to_utc(end, place))
        day += _DAY


def _get_wall_times(restriction: Restriction, day: date) -> tuple[datetime, datetime]:
    end_day = day if restriction.end > restriction.start else day + _DAY
    return datetime.combine(day, restriction.start), datetime.combine(end_day, restriction.end)


def _join_periods(ordered: Iterator[Period]) -> Iterator[Period]:
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


class TurnUnit(StrEnum):
    """Unit for the length of turns."""

    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"


#: Maximum number of units in a turn: about six weeks in hours, or a year in days or weeks.
MAX_TURN_LENGTH: Mapping[TurnUnit, int] = {
    TurnUnit.HOURS: 1000,
    TurnUnit.DAYS: 366,
    TurnUnit.WEEKS: 53,
}


@dataclass(frozen=True, kw_only=True)
class Cadence:
    """The handoff interval of a rotation, and the local time of its handoffs."""

    unit: TurnUnit
    #: Number of units between two handoffs.
    every: int = 1
    #: Local time of the handoffs. Turns in hours are counted from this time.
    at: time = time(9)
    #: Weekdays of handoffs between weekly turns: 0 is Monday.
    weekdays: tuple[int, ...] = (0,)


class RotationTurn(NamedTuple):
    """A turn of a rotation. Turns are numbered from 0."""

    number: int
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Handoffs:
    """The handoffs of a rotation, computed from its cadence, first day and time zone."""

    cadence: Cadence
    starts_on: date
    time_zone: str

    @cached_property
    def begins_at(self) -> datetime:
        """Start of the first turn."""
        return convert_to_utc(
            datetime.combine(self.starts_on, self.cadence.at), get_zone(self.time_zone)
        )

    def get_turn_number_at(self, moment: datetime) -> int:
        """Return the number of the turn at a given time.

        The number is negative before the start.
        """
        return _HandoffCalculator(self).get_turn_number_at(moment)

    def generate_turns(self, start: datetime, end: datetime) -> Iterator[RotationTurn]:
        """Yield the turns that overlap a period, in order and truncated to the period."""
        begin = max(start, self.begins_at)
        if begin >= end:
            return
        known = _HandoffCalculator(self).list_handoffs(begin, end)
        for (moment, number), (following, _) in pairwise(known):
            if moment < end and following > begin:
                yield RotationTurn(number, max(moment, begin), min(following, end))


class _HandoffCalculator:
    """Computes and caches the handoffs of a rotation."""

    def __init__(self, handovers: Handoffs) -> None:
        self._cadence, self._zone = handovers.cadence, get_zone(handovers.time_zone)
        cadence, day = handovers.cadence, handovers.starts_on
        begin = day - timedelta(days=day.weekday()) if cadence.unit is TurnUnit.WEEKS else day
        self._anchor = datetime.combine(begin, cadence.at)
        self._starts: dict[int, datetime] = {}
        self._first = self._find_index_at(handovers.begins_at)

    def get_turn_number_at(self, moment: datetime) -> int:
        """Return the number of the turn at a given time."""
        return self._find_index_at(moment) - self._first

    def list_handoffs(self, start: datetime, end: datetime) -> list[tuple[datetime, int]]:
        """Return the handoffs from before `start` to after `end`, with the numbers of their turns.

        Clock changes can make several handoffs coincide or change their order. The turn with the
        highest number then applies.
        """
        lowest = (
            self._find_index_by_wall_time(convert_to_local(start, self._zone))
            - self._max_clock_shift
        )
        highest = (
            self._find_index_by_wall_time(convert_to_local(end, self._zone)) + self._max_clock_shift
        )
        ordered = sorted(
            (self._compute_start(index), index) for index in range(lowest, highest + 1)
        )
        found: dict[datetime, int] = {}
        last = lowest - 1
        for moment, index in ordered:
            if index > last:
                found[moment] = index - self._first
                last = index
        return list(found.items())

    def _find_index_at(self, moment: datetime) -> int:
        """Return the index of the last turn that has started at a given time."""
        highest = (
            self._find_index_by_wall_time(convert_to_local(moment, self._zone))
            + self._max_clock_shift
        )
        return next(
            index
            for index in range(highest, highest - 3 * self._max_clock_shift, -1)
            if self._compute_start(index) <= moment
        )

    @cached_property
    def _shortest_turn(self) -> timedelta:
        cadence = self._cadence
        if cadence.unit is TurnUnit.HOURS:
            return timedelta(hours=cadence.every)
        return _DAY * cadence.every if cadence.unit is TurnUnit.DAYS else _DAY

    @cached_property
    def _max_clock_shift(self) -> int:
        """Number of turns by which a clock change can shift the computed index of a turn."""
        return _MAX_CLOCK_CHANGE // self._shortest_turn + 1

    @cached_property
    def _cycle(self) -> timedelta:
        cadence = self._cadence
        if cadence.unit is TurnUnit.WEEKS:
            return _WEEK * cadence.every
        return self._shortest_turn

    @cached_property
    def _offsets(self) -> tuple[timedelta, ...]:
        """Offsets of the handoffs from the start of a cycle."""
        if self._cadence.unit is TurnUnit.WEEKS:
            return tuple(_DAY * day for day in sorted(self._cadence.weekdays))
        return (timedelta(0),)

    def _find_index_by_wall_time(self, local_time: datetime) -> int:
        cycle, rest = divmod(local_time - self._anchor, self._cycle)
        return cycle * len(self._offsets) + bisect_right(self._offsets, rest) - 1

    def _compute_start(self, index: int) -> datetime:
        found = self._starts.get(index)
        if found is None:
            cycle, position = divmod(index, len(self._offsets))
            local = self._anchor + cycle * self._cycle + self._offsets[position]
            found = self._starts[index] = convert_to_utc(local, self._zone)
        return found


@dataclass(frozen=True, kw_only=True)
class RotationPlan:
    """A version of a rotation that applies for a period.

    Each change to the rotation creates a new version.
    """

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
    #: End of validity. None for the current version of a rotation.
    valid_until: datetime | None = None

    @property
    def handoffs(self) -> Handoffs:
        """The handoffs, computed from the cadence, first day and time zone of the rotation."""
        return Handoffs(self.cadence, self.starts_on, self.time_zone)

    def get_user_id_for_turn(self, turn: int) -> int:
        """Return the ID of the user who has the turn with the given number."""
        return self.user_ids[(turn + self.first_turn) % len(self.user_ids)]


@dataclass(frozen=True, kw_only=True)
class Override:
    """An override, which puts a user on call for a period.

    The user replaces all other users or one user, or is on call in addition to other users.
    """

    id: int
    user_id: int
    during: Period
    #: ID of the replaced user. None if the override replaces all users or, with `in_addition`, no
    #: user.
    instead_of_id: int | None = None
    in_addition: bool = False


@dataclass(frozen=True, kw_only=True)
class UserPeriod:
    """A period in which a user has shifts, as one side of a swap."""

    user_id: int
    during: Period


@dataclass(frozen=True, kw_only=True)
class Swap:
    """A swap, in which two users exchange the shifts of two periods."""

    id: int
    first: UserPeriod
    second: UserPeriod


@dataclass(frozen=True, kw_only=True)
class SchedulePlan:
    """All data that determines the users on call in a schedule."""

    schedule_id: int
    rotations: tuple[RotationPlan, ...] = ()
    #: Overrides and swaps, each in order of creation.
    overrides: tuple[Override, ...] = ()
    swaps: tuple[Swap, ...] = ()
    #: Periods in which users can be on call because they have a role and an active account. Users
    #: without an entry can always be on call.
    eligible_periods: Mapping[int, Sequence[Period]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def can_be_on_call(self, user_id: int, moment: datetime) -> bool:
        """Return whether a user can be on call at a given time."""
        times = self.eligible_periods.get(user_id)
        return times is None or any(each.start <= moment < each.end for each in times)
