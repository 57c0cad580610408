"""Moves swaps and overrides with their turns when a schedule changes.

A swap exchanges whole turns. If a change to a rotation moves one of these turns, the swap moves
too. If the turn no longer exists, the swap ends, and both users receive an email. The same applies
to an override of one whole turn. An override of any other period has its own times and does not
move.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import func, select, union_all

from domain.access.actor import UnitOfWork
from domain.paging.on_call import shift_change_notices
from domain.paging.on_call.overrides_and_swaps import (
    build_change_resources,
    end_override_row,
    end_swap_row,
    record_and_announce_change,
)
from domain.paging.on_call.rotation_turns import UserTurn, find_user_turns
from domain.paging.on_call.schedule_plans import Override, Period, SchedulePlan, Swap, UserPeriod
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.paging.on_call.shift_change_notices import ShiftChangeContext
from domain.paging.on_call.types import OnCallOverride, OnCallSwap
from models import OnCallOverride as OverrideRow
from models import OnCallSwap as SwapRow

#: Period after the last swap or override that is searched for turns.
_SEARCHED_PERIOD = timedelta(days=62)


@dataclass(frozen=True)
class MovedSwapsAndOverrides:
    """The new periods of the swaps and overrides that a change moves or ends.

    The keys are the IDs of the swaps and overrides. The value is None for a swap or override that
    ends.
    """

    swaps: Mapping[int, tuple[Period, Period] | None]
    overrides: Mapping[int, Period | None]


@dataclass(frozen=True, kw_only=True)
class PreviousPlan:
    """The plan of a schedule before a change, for the period with swaps and overrides."""

    plan: SchedulePlan
    within: Period


def load_previous_plan(work: UnitOfWork, schedule_id: int) -> PreviousPlan | None:
    """Return a schedule's plan before a change, or None if no swaps or overrides can move."""
    ends = union_all(
        select(SwapRow.over_at.label("at")).where(SwapRow.schedule_id == schedule_id),
        select(OverrideRow.ends_at.label("at")).where(OverrideRow.schedule_id == schedule_id),
    ).subquery()
    last: datetime | None = work.session.scalar(select(func.max(ends.c.at)))
    if last is None or last <= work.now:
        return None
    within = Period(work.now, last + _SEARCHED_PERIOD)
    plans = load_schedule_plans([schedule_id], within, session=work.session, now=work.now)
    return PreviousPlan(plan=plans[schedule_id], within=within) if schedule_id in plans else None


def find_moved_swaps_and_overrides(
    previous_plan: PreviousPlan | None, work: UnitOfWork
) -> MovedSwapsAndOverrides:
    """Return the swaps and overrides that a change moves or ends.

    `previous_plan` is the plan before the change, or None if there is nothing to move.
    """
    if previous_plan is None:
        return MovedSwapsAndOverrides({}, {})
    before, within = previous_plan.plan, previous_plan.within
    plans = load_schedule_plans([before.schedule_id], within, session=work.session, now=work.now)
    after = plans[before.schedule_id]
    if after.rotations == before.rotations:
        return MovedSwapsAndOverrides({}, {})
    swaps, kept = _find_moved_swaps(before, after, within)
    overrides = _find_moved_overrides(before, replace(after, swaps=kept), within)
    return MovedSwapsAndOverrides(swaps, overrides)


def _find_moved_swaps(
    previous_plan: SchedulePlan, changed_plan: SchedulePlan, period: Period
) -> tuple[Mapping[int, tuple[Period, Period] | None], tuple[Swap, ...]]:
    """Return the swaps that a change moves or ends, and the swaps that remain after the change."""
    moved: dict[int, tuple[Period, Period] | None] = {}
    kept: tuple[Swap, ...] = ()
    for number, swap in enumerate(previous_plan.swaps):
        # A swap applies on top of the rotations and the earlier swaps.
        old = find_user_turns(
            replace(previous_plan, overrides=(), swaps=previous_plan.swaps[:number]), period
        )
        new = find_user_turns(replace(changed_plan, overrides=(), swaps=kept), period)
        first, second = (
            _find_new_period(each, old, new, period.start) for each in (swap.first, swap.second)
        )
        if first is None or second is None or _has_overlap(first, second):
            moved[swap.id] = None
            continue
        if (first, second) != (swap.first.during, swap.second.during):
            moved[swap.id] = first, second
        sides = replace(swap.first, during=first), replace(swap.second, during=second)
        kept = (*kept, replace(swap, first=sides[0], second=sides[1]))
    return moved, kept


def _find_moved_overrides(
    previous_plan: SchedulePlan, changed_plan: SchedulePlan, period: Period
) -> Mapping[int, Period | None]:
    old = find_user_turns(replace(previous_plan, overrides=()), period)
    new = find_user_turns(replace(changed_plan, overrides=()), period)
    moved: dict[int, Period | None] = {}
    for each in previous_plan.overrides:
        if each.in_addition or not _is_whole_turn(each, old, period.start):
            continue
        during = _find_matching_turn(
            each.instead_of_id, _get_remaining_part(each.during, period.start), new
        )
        if during is not None:
            during = _keep_past_part(each.during, during, period.start)
        # An override that replaces everyone stays if its turn no longer exists, since it does not
        # depend on a user.
        if during != each.during and (during is not None or each.instead_of_id is not None):
            moved[each.id] = during
    return moved


def _is_whole_turn(override: Override, old: Sequence[UserTurn], now: datetime) -> bool:
    return _get_remaining_part(override.during, now) in _find_turns(override.instead_of_id, old)


def _find_new_period(
    stint: UserPeriod, old: Sequence[UserTurn], new_turns: Sequence[UserTurn], now: datetime
) -> Period | None:
    """Return the period of one side of a swap after a change.

    Return None if the shifts of this side no longer exist.
    """
    if stint.during.end <= now:
        return stint.during
    rest = _get_remaining_part(stint.during, now)
    if rest in _find_turns(stint.user_id, old):
        found = _find_matching_turn(stint.user_id, rest, new_turns)
        return None if found is None else _keep_past_part(stint.during, found, now)
    # The period covers only part of a turn, so it must have the same shifts as before.
    is_same = _find_shifts(rest, stint.user_id, old) == _find_shifts(rest, stint.user_id, new_turns)
    return stint.during if is_same else None


def _get_remaining_part(period: Period, now: datetime) -> Period:
    return Period(max(period.start, now), period.end)


def _keep_past_part(previous_period: Period, new_period: Period, now: datetime) -> Period:
    """Return the new period, but keep the previous start if it is in the past."""
    start = previous_period.start if previous_period.start < now else new_period.start
    return Period(start, new_period.end)


def _find_turns(user_id: int | None, turns: Iterable[UserTurn]) -> Sequence[Period]:
    return [each.period for each in turns if user_id in (None, each.duty.user_id)]


def _find_matching_turn(
    user_id: int | None, remaining_period: Period, new_turns: Sequence[UserTurn]
) -> Period | None:
    """Return the new turn that covers at least half of an old turn, or None."""
    own = _find_turns(user_id, new_turns)
    best = max(own, key=lambda each: _compute_overlap(each, remaining_period), default=None)
    half = (remaining_period.end - remaining_period.start) / 2
    return best if best is not None and _compute_overlap(best, remaining_period) >= half else None


def _compute_overlap(first: Period, second: Period) -> timedelta:
    return min(first.end, second.end) - max(first.start, second.start)


def _has_overlap(first: Period, second: Period) -> bool:
    return _compute_overlap(first, second) > timedelta()


def _find_shifts(
    remaining_period: Period, user_id: int, turns: Iterable[UserTurn]
) -> Sequence[Period]:
    parts = [
        Period(max(part.start, remaining_period.start), min(part.end, remaining_period.end))
        for each in turns
        if each.duty.user_id == user_id
        for part in each.parts
        if _has_overlap(part, remaining_period)
    ]
    joined: list[Period] = []
    for part in sorted(parts):
        if joined and joined[-1].end >= part.start:
            joined[-1] = Period(joined[-1].start, max(joined[-1].end, part.end))
        else:
            joined.append(part)
    return joined


def move_swaps_and_overrides(moves: MovedSwapsAndOverrides, change: ShiftChangeContext) -> None:
    """Move and end swaps and overrides, log the changes, and notify the users."""
    session = change.work.session
    for swap in session.scalars(select(SwapRow).where(SwapRow.id.in_(moves.swaps))).all():
        _move_swap(swap, moves.swaps[swap.id], change)
    rows = session.scalars(select(OverrideRow).where(OverrideRow.id.in_(moves.overrides)))
    for override in rows.all():
        _move_override(override, moves.overrides[override.id], change)


def _move_swap(
    row: SwapRow, after: tuple[Period, Period] | None, change: ShiftChangeContext
) -> None:
    work = change.work
    before = build_change_resources(work, [row], OnCallSwap)[0]
    if after is None:
        end_swap_row(row, work)
        record_and_announce_change(
            change, before, "ended", shift_change_notices.queue_ended_swap_notices
        )
        return
    (row.starts_at, row.ends_at), (row.other_starts_at, row.other_ends_at) = (
        (each.start, each.end) for each in after
    )
    row.over_at = max(row.ends_at, row.other_ends_at)
    work.session.flush()
    moved = build_change_resources(work, [row], OnCallSwap)[0]
    record_and_announce_change(
        change, moved, "moved", shift_change_notices.queue_moved_swap_notices
    )


def _move_override(row: OverrideRow, period: Period | None, change: ShiftChangeContext) -> None:
    work = change.work
    before = build_change_resources(work, [row], OnCallOverride)[0]
    if period is None:
        end_override_row(row, work)
        record_and_announce_change(
            change, before, "ended", shift_change_notices.queue_orphaned_override_notices
        )
        return
    row.starts_at, row.ends_at = period.start, period.end
    work.session.flush()
    moved = build_change_resources(work, [row], OnCallOverride)[0]
    record_and_announce_change(
        change, moved, "moved", shift_change_notices.queue_moved_override_notices
    )


def describe_moved_swaps_and_overrides(
    moves: MovedSwapsAndOverrides, change: ShiftChangeContext
) -> tuple[str, ...]:
    """Return a sentence for each swap or override that a change would move or end."""
    session = change.work.session
    swaps = session.scalars(select(SwapRow).where(SwapRow.id.in_(moves.swaps))).all()
    rows = session.scalars(select(OverrideRow).where(OverrideRow.id.in_(moves.overrides))).all()
    return (
        *(
            _describe_swap_move(each, moves.swaps[each.id], change)
            for each in build_change_resources(change.work, swaps, OnCallSwap)
        ),
        *(
            _describe_override_move(each, moves.overrides[each.id], change)
            for each in build_change_resources(change.work, rows, OnCallOverride)
        ),
    )


def _describe_swap_move(
    swap: OnCallSwap, after: tuple[Period, Period] | None, change: ShiftChangeContext
) -> str:
    people = f"The swap of {swap.user.username} and {swap.other_user.username}"
    if after is None:
        start = change.format_time(min(swap.starts_at, swap.other_starts_at))
        return f"{people} that starts on {start} ends, because its turns no longer exist."
    first, second = (change.format_period(each.start, each.end) for each in after)
    return (
        f"{people} moves: {swap.user.username} gives away the turn {first}, and "
        f"{swap.other_user.username} the turn {second}."
    )


def _describe_override_move(
    override: OnCallOverride, period: Period | None, change: ShiftChangeContext
) -> str:
    when = change.format_period(override.starts_at, override.ends_at)
    which = f"The override of {override.user.username} {when}"
    if period is None:
        return f"{which} ends, because the turn that it covers no longer exists."
    return f"{which} moves. Its new period is {change.format_period(period.start, period.end)}."
