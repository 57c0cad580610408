"""Computes the users on call over time from rotations, swaps and overrides, in this order.

The highest layer with a user on call applies, with all of its rotations. Users who cannot be on
call are skipped. If no user in a layer is left, the layer below applies. If no user in any layer is
left, there is a gap. Overrides apply in order of creation, with these effects:

- An override that replaces everyone leaves only its own user on call.
- An override that replaces one user takes over the shifts of that user.
- An additional override leaves all other users on call.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from domain.paging.on_call.schedule_plans import (
    Period,
    RotationPlan,
    RotationTurn,
    SchedulePlan,
    Swap,
    find_allowed_periods,
)


class DutySource(StrEnum):
    """The reason why a user is on call."""

    ROTATION = "rotation"
    SWAP = "swap"
    OVERRIDE = "override"


class OnCallDuty(NamedTuple):
    """A user on call, with the rotation, swap or override that puts the user on call."""

    user_id: int
    source: DutySource
    #: ID of the rotation, override or swap.
    source_id: int


@dataclass(frozen=True, kw_only=True)
class OnCallSpan:
    """A period in which the same users are on call.

    `duties` is empty if the period is a gap.
    """

    start: datetime
    end: datetime
    duties: tuple[OnCallDuty, ...]

    @property
    def user_ids(self) -> tuple[int, ...]:
        """IDs of the users on call."""
        return tuple(each.user_id for each in self.duties)


class OnCallTurnPart(NamedTuple):
    """A part of a turn that lies within the restrictions of its rotation."""

    start: datetime
    end: datetime
    duty: OnCallDuty


class _RotationTurns:
    """The turns of a rotation in order, without overlaps."""

    def __init__(self, plan: RotationPlan, period: Period) -> None:
        self.layer = plan.layer
        self._turns = tuple(find_turn_parts(plan, period))
        self._starts = [each.start for each in self._turns]

    @property
    def handoff_times(self) -> Iterator[datetime]:
        """Times at which the user on call may change."""
        for each in self._turns:
            yield from (each.start, each.end)

    def find_duty_at(self, moment: datetime) -> OnCallDuty | None:
        """Return the duty at a given time, or None."""
        index = bisect_right(self._starts, moment) - 1
        if index < 0 or moment >= self._turns[index].end:
            return None
        return self._turns[index].duty


def find_turn_parts(plan: RotationPlan, period: Period) -> Iterator[OnCallTurnPart]:
    """Yield the parts of turns in a period that lie within the restrictions of the rotation."""
    start = max(period.start, plan.valid_from)
    end = min(period.end, plan.valid_until or period.end)
    if start >= end or not plan.user_ids:
        return
    allowed = find_allowed_periods(plan.restrictions, plan.time_zone, Period(start, end))
    ends = [each.end for each in allowed]
    for turn in _find_whole_turns(plan, start, end):
        duty = OnCallDuty(plan.get_user_id_for_turn(turn.number), DutySource.ROTATION, plan.id)
        for index in range(bisect_right(ends, turn.start), len(allowed)):
            part = allowed[index]
            if part.start >= turn.end:
                break
            yield OnCallTurnPart(max(part.start, turn.start), min(part.end, turn.end), duty)


def _find_whole_turns(plan: RotationPlan, start: datetime, end: datetime) -> Iterable[RotationTurn]:
    if len(set(plan.user_ids)) > 1:
        return plan.handoffs.generate_turns(start, end)
    # Nothing changes at a handoff from a user to the same user.
    begin = max(start, plan.handoffs.begins_at)
    return [RotationTurn(0, begin, end)] if begin < end else []


def compute_spans(plan: SchedulePlan, start: datetime, end: datetime) -> tuple[OnCallSpan, ...]:
    """Divide a period into consecutive spans in which the same users are on call.

    A span in which nobody is on call is a gap. Consecutive spans with the same users for the same
    reasons are merged.
    """
    if start >= end:
        return ()
    within = Period(start, end)
    # Rotations whose users cannot be on call in this period are skipped.
    counting = (
        each
        for each in plan.rotations
        if plan.swaps or any(plan.eligible_periods.get(user_id) != () for user_id in each.user_ids)
    )
    tracks = sorted(
        (_RotationTurns(each, within) for each in counting), key=lambda track: -track.layer
    )
    changes = (each for each in _find_change_times(plan, tracks) if start < each < end)
    moments = sorted({start, end, *changes})
    parts = [
        OnCallSpan(start=left, end=right, duties=_find_duties(plan, tracks, left))
        for left, right in pairwise(moments)
    ]
    return tuple(_merge_spans(parts))


def _find_change_times(plan: SchedulePlan, tracks: Sequence[_RotationTurns]) -> Iterator[datetime]:
    for track in tracks:
        yield from track.handoff_times
    for override in plan.overrides:
        yield from (override.during.start, override.during.end)
    for swap in plan.swaps:
        for each in (swap.first, swap.second):
            yield from (each.during.start, each.during.end)
    for period in chain.from_iterable(plan.eligible_periods.values()):
        yield from (period.start, period.end)


def _merge_spans(
    parts: Iterable[OnCallSpan], by: Callable[[OnCallSpan], object] = lambda span: span.duties
) -> Iterator[OnCallSpan]:
    for _, same in groupby(parts, key=by):
        first, *others = same
        yield replace(first, end=others[-1].end) if others else first


def merge_spans_by_users(parts: Iterable[OnCallSpan]) -> tuple[OnCallSpan, ...]:
    """Merge consecutive spans with the same users, regardless of the reasons.

    The duties of a merged span are the duties at its start.
    """
    return tuple(_merge_spans(parts, by=lambda span: frozenset(span.user_ids)))


def _find_duties(
    plan: SchedulePlan, tracks: Sequence[_RotationTurns], moment: datetime
) -> tuple[OnCallDuty, ...]:
    #: IDs of replaced users, with the duties that replace the duties of these users. None for
    #: additional overrides.
    covers: list[tuple[int | None, OnCallDuty]] = []
    found: tuple[OnCallDuty, ...] | None = None
    for each in reversed(plan.overrides):
        if not (
            _is_moment_within(each.during, moment) and plan.can_be_on_call(each.user_id, moment)
        ):
            continue
        duty = OnCallDuty(each.user_id, DutySource.OVERRIDE, each.id)
        if each.instead_of_id is None and not each.in_addition:
            found = (duty,)
            break
        covers.append((each.instead_of_id, duty))
    if found is None:
        found = _find_duties_before_overrides(plan, tracks, moment)
    for user_id, duty in reversed(covers):
        taken = [duty if each.user_id == user_id else each for each in found]
        taken += [duty] if user_id is None else []
        found = tuple(sorted({each.user_id: each for each in taken}.values()))
    return found


def _find_duties_before_overrides(
    plan: SchedulePlan, tracks: Sequence[_RotationTurns], moment: datetime
) -> tuple[OnCallDuty, ...]:
    for _, layer in groupby(tracks, key=lambda track: track.layer):
        turns = (track.find_duty_at(moment) for track in layer)
        swapped = (_apply_swaps(plan, turn, moment) for turn in turns if turn is not None)
        # A user with a current turn in two rotations of a layer is on call only once.
        found = {
            each.user_id: each for each in swapped if plan.can_be_on_call(each.user_id, moment)
        }
        if found:
            return tuple(sorted(found.values()))
    return ()


def _apply_swaps(plan: SchedulePlan, duty: OnCallDuty, moment: datetime) -> OnCallDuty:
    """Return a duty with the user who is on call after all swaps are applied.

    A swap with a user who cannot be on call has no effect.
    """
    for swap in plan.swaps:
        taker = _find_swap_partner(swap, duty.user_id, moment)
        if taker is not None and plan.can_be_on_call(taker, moment):
            duty = OnCallDuty(taker, DutySource.SWAP, swap.id)
    return duty


def _find_swap_partner(swap: Swap, user_id: int, moment: datetime) -> int | None:
    for given, taken in ((swap.first, swap.second), (swap.second, swap.first)):
        if given.user_id == user_id and _is_moment_within(given.during, moment):
            return taken.user_id
    return None


def _is_moment_within(period: Period, moment: datetime) -> bool:
    return period.start <= moment < period.end
