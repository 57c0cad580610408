"""In which schedules a user is on call now or next."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select, union
from sqlalchemy.orm import Session

from domain.on_call.current import OnCall, on_call_and_next
from models import (
    OnCallOverride,
    OnCallRotation,
    OnCallSchedule,
    OnCallSwap,
    OnCallTurn,
    Project,
)


@dataclass(frozen=True, kw_only=True)
class MyDuty:
    """A time in which a user is on call in a schedule: now, or the next one."""

    schedule_id: int
    schedule: str
    time_zone: str
    project_path: str
    is_now: bool
    #: When it begins if it is the next one.
    start: datetime
    #: None for the present one if nothing changes within 400 days.
    end: datetime | None


def duties_of(user_id: int, *, session: Session, now: datetime) -> tuple[MyDuty, ...]:
    """Return where a user is on call now, and then where they are next, the earliest first."""
    rows = session.execute(
        select(OnCallSchedule.id, OnCallSchedule.name, OnCallSchedule.time_zone, Project.path)
        .join(Project, Project.id == OnCallSchedule.project_id)
        .where(
            OnCallSchedule.id.in_(_schedules_of(user_id, session=session, now=now)),
            Project.deleted_at.is_(None),
        )
    ).all()
    plans = on_call_and_next([row.id for row in rows], at=now, session=session)
    found = [
        MyDuty(
            schedule_id=row.id,
            schedule=row.name,
            time_zone=row.time_zone,
            project_path=row.path,
            is_now=is_now,
            start=start,
            end=end,
        )
        for row in rows
        if row.id in plans
        for is_now, start, end in _duty(plans[row.id], user_id)
    ]
    return tuple(sorted(found, key=lambda duty: (not duty.is_now, duty.start, duty.schedule)))


def _duty(plan: OnCall, user_id: int) -> list[tuple[bool, datetime, datetime | None]]:
    if user_id in plan.now.user_ids:
        return [(True, plan.now.start, plan.now.end if plan.changes else None)]
    if plan.next is not None and user_id in plan.next.user_ids:
        return [(False, plan.next.start, plan.next.end)]
    return []


def _schedules_of(user_id: int, *, session: Session, now: datetime) -> Collection[int]:
    """Return the schedules in which a user has a turn, an override or a swap ahead."""
    turns = (
        select(OnCallRotation.schedule_id)
        .join(OnCallTurn, OnCallTurn.rotation_id == OnCallRotation.id)
        .where(OnCallTurn.user_id == user_id, OnCallRotation.valid_until.is_(None))
    )
    overrides = select(OnCallOverride.schedule_id).where(
        OnCallOverride.user_id == user_id, OnCallOverride.ends_at > now
    )
    is_mine = or_(OnCallSwap.user_id == user_id, OnCallSwap.other_user_id == user_id)
    swaps = select(OnCallSwap.schedule_id).where(is_mine, OnCallSwap.over_at > now)
    return session.scalars(union(turns, overrides, swaps)).all()
