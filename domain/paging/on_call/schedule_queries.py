"""Queries that read the plans of schedules from the database."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time
from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from domain.core.types.base import get_column_values
from domain.paging.on_call.eligibility import find_eligible_periods
from domain.paging.on_call.schedule_owners import find_schedule_owners
from domain.paging.on_call.schedule_plans import (
    Cadence,
    Override,
    Period,
    Restriction,
    RotationPlan,
    SchedulePlan,
    Swap,
    TurnUnit,
    UserPeriod,
)
from models import (
    OnCallAbsence,
    OnCallOverride,
    OnCallRotation,
    OnCallSwap,
    OnCallTurn,
)


def load_schedule_plans(
    schedule_ids: Collection[int], period: Period, *, session: Session, now: datetime
) -> Mapping[int, SchedulePlan]:
    """Return the plans of schedules for a period, by schedule ID.

    Unknown schedule IDs are left out.
    """
    places = find_schedule_owners(schedule_ids, session=session)
    ids = places.keys()
    is_ahead = or_(OnCallRotation.valid_until.is_(None), OnCallRotation.valid_until > period.start)
    counting = _select_rotations(ids).where(is_ahead, OnCallRotation.valid_from < period.end)
    rotations = _load_rotation_plans(counting, session=session)
    overrides = _find_overrides(ids, period, session=session)
    swaps = _find_swaps(ids, period, session=session)
    plans = {
        each: SchedulePlan(
            schedule_id=each,
            rotations=tuple(rotations[each]),
            overrides=tuple(overrides[each]),
            swaps=tuple(swaps[each]),
        )
        for each in places
    }
    named = {each: _list_plan_users(plan) for each, plan in plans.items()}
    times = find_eligible_periods(places, named, period=period, session=session, now=now)
    return {each: replace(plan, eligible_periods=times[each]) for each, plan in plans.items()}


def load_absences(
    period: Period, *, session: Session, user_ids: Collection[int] | None = None
) -> Mapping[int, Sequence[Period]]:
    """Return the absences in a period, by user ID.

    Overlapping absences are merged. If `user_ids` is None, return the absences of all users.
    """
    found = select(OnCallAbsence.user_id, OnCallAbsence.starts_at, OnCallAbsence.ends_at).where(
        OnCallAbsence.ends_at > period.start, OnCallAbsence.starts_at < period.end
    )
    if user_ids is not None:
        found = found.where(OnCallAbsence.user_id.in_(user_ids))
    merged: dict[int, list[Period]] = defaultdict(list)
    for user_id, start, end in session.execute(found.order_by(OnCallAbsence.starts_at)):
        known = merged[user_id]
        if known and start <= known[-1].end:
            known[-1] = Period(known[-1].start, max(known[-1].end, end))
        else:
            known.append(Period(start, end))
    return merged


def load_current_rotations(
    ids: Collection[int], *, session: Session
) -> Mapping[int, list[RotationPlan]]:
    """Return the current rotations of schedules, lowest layer first."""
    statement = _select_rotations(ids).where(OnCallRotation.valid_until.is_(None))
    return _load_rotation_plans(statement, session=session)


def _select_rotations(ids: Iterable[int]) -> Select[OnCallRotation]:
    return (
        select(OnCallRotation)
        .where(OnCallRotation.schedule_id.in_(ids))
        .order_by(OnCallRotation.layer, OnCallRotation.id)
    )


def _load_rotation_plans(
    statement: Select[OnCallRotation], *, session: Session
) -> Mapping[int, list[RotationPlan]]:
    rows = session.scalars(statement.execution_options(populate_existing=True)).all()
    users = _find_turn_users([row.id for row in rows], session=session)
    found: dict[int, list[RotationPlan]] = defaultdict(list)
    for row in rows:
        found[row.schedule_id].append(_build_rotation_plan(row, users[row.id]))
    return found


def _find_turn_users(rotation_ids: Sequence[int], *, session: Session) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    rows = session.execute(
        select(OnCallTurn.rotation_id, OnCallTurn.user_id)
        .where(OnCallTurn.rotation_id.in_(rotation_ids))
        .order_by(OnCallTurn.rotation_id, OnCallTurn.position)
    )
    for rotation_id, user_id in rows:
        found[rotation_id].append(user_id)
    return found


def _build_rotation_plan(row: OnCallRotation, user_ids: Iterable[int]) -> RotationPlan:
    return RotationPlan(
        **get_column_values(row, RotationPlan)
        | {"restrictions": tuple(map(_parse_restriction, row.restrictions))},
        cadence=Cadence(
            unit=TurnUnit(row.unit),
            every=row.every,
            at=row.handover_time,
            weekdays=tuple(row.weekdays),
        ),
        user_ids=tuple(user_ids),
    )


def _parse_restriction(stored_values: Mapping[str, Any]) -> Restriction:
    return Restriction(
        start=time.fromisoformat(stored_values["start"]),
        end=time.fromisoformat(stored_values["end"]),
        weekdays=tuple(stored_values["weekdays"]),
    )


def serialize_restriction(restriction: Restriction) -> dict[str, Any]:
    """Convert a restriction to its stored format."""
    return {
        "start": restriction.start.isoformat("minutes"),
        "end": restriction.end.isoformat("minutes"),
        "weekdays": list(restriction.weekdays),
    }


def _find_overrides(
    ids: Iterable[int], period: Period, *, session: Session
) -> Mapping[int, list[Override]]:
    found: dict[int, list[Override]] = defaultdict(list)
    rows = session.scalars(
        select(OnCallOverride)
        .where(
            OnCallOverride.schedule_id.in_(ids),
            OnCallOverride.ends_at > period.start,
            OnCallOverride.starts_at < period.end,
        )
        .order_by(OnCallOverride.id)
    )
    for row in rows:
        during = Period(row.starts_at, row.ends_at)
        override = Override(**get_column_values(row, Override), during=during)
        found[row.schedule_id].append(override)
    return found


def _find_swaps(
    ids: Iterable[int], period: Period, *, session: Session
) -> Mapping[int, list[Swap]]:
    found: dict[int, list[Swap]] = defaultdict(list)
    rows = session.scalars(
        select(OnCallSwap)
        .where(OnCallSwap.schedule_id.in_(ids), OnCallSwap.over_at > period.start)
        .order_by(OnCallSwap.id)
    )
    for row in rows:
        first = UserPeriod(user_id=row.user_id, during=Period(row.starts_at, row.ends_at))
        other = Period(row.other_starts_at, row.other_ends_at)
        second = UserPeriod(user_id=row.other_user_id, during=other)
        found[row.schedule_id].append(Swap(id=row.id, first=first, second=second))
    return found


def _list_plan_users(plan: SchedulePlan) -> set[int]:
    """Return the IDs of all users in a plan."""
    in_rotations = {user_id for each in plan.rotations for user_id in each.user_ids}
    in_swaps = {each.user_id for swap in plan.swaps for each in (swap.first, swap.second)}
    return in_rotations | in_swaps | {each.user_id for each in plan.overrides}
