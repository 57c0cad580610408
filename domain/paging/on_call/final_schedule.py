"""Who is on call when: rotations, then swaps, then overrides.

Of rotations, the highest layer that has somebody counts, with all of its rotations. A user who
cannot be on call is left out, so that the layer below takes over; where nobody is left, there is a
gap. Of overrides, each counts on top of those before it: one of everybody leaves its user alone,
one of a user has what that user would have, and one in addition leaves everybody on call.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from domain.paging.on_call.schedule_values import Period, Plan, RotationPlan, Swap, Turn, periods


class Source(StrEnum):
    """Why somebody is on call."""

    ROTATION = "rotation"
    SWAP = "swap"
    OVERRIDE = "override"


class Duty(NamedTuple):
    """A user on call, and why."""

    user_id: int
    source: Source
    #: Of the rotation, override or swap.
    source_id: int


@dataclass(frozen=True, kw_only=True)
class Span:
    """A time in which the same users are on call; a gap without any."""

    start: datetime
    end: datetime
    duties: tuple[Duty, ...]

    @property
    def user_ids(self) -> tuple[int, ...]:
        """Return the users on call."""
        return tuple(each.user_id for each in self.duties)


class _Turn(NamedTuple):
    """A part of a turn in which its rotation is on call."""

    start: datetime
    end: datetime
    duty: Duty


class _Track:
    """The turns of one rotation in order, none of which overlaps another."""

    def __init__(self, plan: RotationPlan, within: Period) -> None:
        self.layer = plan.layer
        self._turns = tuple(_turns(plan, within))
        self._starts = [each.start for each in self._turns]

    @property
    def bounds(self) -> Iterator[datetime]:
        """Return the moments at which it may change."""
        for each in self._turns:
            yield from (each.start, each.end)

    def at(self, moment: datetime) -> Duty | None:
        """Return whose turn it is."""
        index = bisect_right(self._starts, moment) - 1
        if index < 0 or moment >= self._turns[index].end:
            return None
        return self._turns[index].duty


def _turns(plan: RotationPlan, within: Period) -> Iterator[_Turn]:
    start = max(within.start, plan.valid_from)
    end = min(within.end, plan.valid_until or within.end)
    if start >= end or not plan.user_ids:
        return
    allowed = periods(plan.restrictions, plan.time_zone, Period(start, end))
    ends = [each.end for each in allowed]
    for turn in _whole_turns(plan, start, end):
        duty = Duty(plan.user_at(turn.number), Source.ROTATION, plan.id)
        for index in range(bisect_right(ends, turn.start), len(allowed)):
            part = allowed[index]
            if part.start >= turn.end:
                break
            yield _Turn(max(part.start, turn.start), min(part.end, turn.end), duty)


def _whole_turns(plan: RotationPlan, start: datetime, end: datetime) -> Iterable[Turn]:
    if len(set(plan.user_ids)) > 1:
        return plan.handovers.turns(start, end)
    # Nothing changes when somebody hands over to themselves.
    begin = max(start, plan.handovers.begins_at)
    return [Turn(0, begin, end)] if begin < end else []


def spans(plan: Plan, start: datetime, end: datetime) -> tuple[Span, ...]:
    """Return who is on call from one moment to another, in order and without holes.

    Where nobody is, there is a span without duties. Turns that follow one another and have the same
    users for the same reason are one span.
    """
    if start >= end:
        return ()
    within = Period(start, end)
    # Those who cannot be on call in this time are not looked for.
    counting = (
        each
        for each in plan.rotations
        if plan.swaps or any(plan.times.get(user_id) != () for user_id in each.user_ids)
    )
    tracks = sorted((_Track(each, within) for each in counting), key=lambda track: -track.layer)
    changes = (each for each in _moments(plan, tracks) if start < each < end)
    moments = sorted({start, end, *changes})
    parts = [
        Span(start=left, end=right, duties=_duties(plan, tracks, left))
        for left, right in pairwise(moments)
    ]
    return tuple(_merged(parts))


def _moments(plan: Plan, tracks: Sequence[_Track]) -> Iterator[datetime]:
    for track in tracks:
        yield from track.bounds
    for override in plan.overrides:
        yield from (override.during.start, override.during.end)
    for swap in plan.swaps:
        for each in (swap.first, swap.second):
            yield from (each.during.start, each.during.end)
    for period in chain.from_iterable(plan.times.values()):
        yield from (period.start, period.end)


def _merged(
    parts: Iterable[Span], by: Callable[[Span], object] = lambda span: span.duties
) -> Iterator[Span]:
    for _, same in groupby(parts, key=by):
        first, *others = same
        yield replace(first, end=others[-1].end) if others else first


def by_users(parts: Iterable[Span]) -> tuple[Span, ...]:
    """Join spans that follow one another with the same users, whatever they are on call for.

    The duties of a joined span are those of its beginning.
    """
    return tuple(_merged(parts, by=lambda span: frozenset(span.user_ids)))


def _duties(plan: Plan, tracks: Sequence[_Track], moment: datetime) -> tuple[Duty, ...]:
    #: Whose duties are taken; None: those of nobody.
    covers: list[tuple[int | None, Duty]] = []
    found: tuple[Duty, ...] | None = None
    for each in reversed(plan.overrides):
        if not (_covers(each.during, moment) and plan.has(each.user_id, moment)):
            continue
        duty = Duty(each.user_id, Source.OVERRIDE, each.id)
        if each.instead_of_id is None and not each.in_addition:
            found = (duty,)
            break
        covers.append((each.instead_of_id, duty))
    if found is None:
        found = _before_overrides(plan, tracks, moment)
    for user_id, duty in reversed(covers):
        taken = [duty if each.user_id == user_id else each for each in found]
        taken += [duty] if user_id is None else []
        found = tuple(sorted({each.user_id: each for each in taken}.values()))
    return found


def _before_overrides(plan: Plan, tracks: Sequence[_Track], moment: datetime) -> tuple[Duty, ...]:
    for _, layer in groupby(tracks, key=lambda track: track.layer):
        turns = (track.at(moment) for track in layer)
        swapped = (_swapped(plan, turn, moment) for turn in turns if turn is not None)
        # Whoever has the turn in two rotations of a layer is on call once.
        found = {each.user_id: each for each in swapped if plan.has(each.user_id, moment)}
        if found:
            return tuple(sorted(found.values()))
    return ()


def _swapped(plan: Plan, duty: Duty, moment: datetime) -> Duty:
    """Return a duty after all swaps; a swap with a user who cannot be on call has no effect."""
    for swap in plan.swaps:
        taker = _taker(swap, duty.user_id, moment)
        if taker is not None and plan.has(taker, moment):
            duty = Duty(taker, Source.SWAP, swap.id)
    return duty


def _taker(swap: Swap, user_id: int, moment: datetime) -> int | None:
    for given, taken in ((swap.first, swap.second), (swap.second, swap.first)):
        if given.user_id == user_id and _covers(given.during, moment):
            return taken.user_id
    return None


def _covers(during: Period, moment: datetime) -> bool:
    return during.start <= moment < during.end
