"""Current and future shifts of schedules, with the names of users."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple, Protocol

from sqlalchemy import or_, select, union
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.profiles import UserReference, find_user_references
from domain.paging.on_call.final_schedule import OnCallSpan, compute_spans, merge_spans_by_users
from domain.paging.on_call.lanes import Lane, build_lanes
from domain.paging.on_call.schedule_owners import find_schedule_owners
from domain.paging.on_call.schedule_plans import Period, SchedulePlan
from domain.paging.on_call.schedule_queries import load_absences, load_schedule_plans
from domain.paging.on_call.schedules import list_all_schedules
from domain.paging.on_call.types import (
    OnCallBalance,
    OnCallNow,
    OnCallShift,
    OnCallUser,
    ScheduleOnCall,
    TimeOnCall,
)
from domain.projects.views import Namespace, ProjectOrGroup
from models import OnCallOverride, OnCallRotation, OnCallSwap, OnCallTurn, Project
from models import OnCallSchedule as ScheduleRow
from models.case_folding import fold_text

#: Placeholder for gaps. No user has this ID.
_GAP_USER_ID = 0
_INSTANT = timedelta(microseconds=1)
#: Periods that are searched for the next change, from shortest to longest. Most schedules change
#: within a week.
_SEARCHED_PERIODS = (timedelta(days=8), timedelta(days=64), timedelta(days=400))


@dataclass(frozen=True, kw_only=True)
class _CurrentAndNextUsers:
    """The users on call in a schedule at a given time, and the next users on call."""

    #: Span until the users on call change. A span in a gap has no duties. If the users do not
    #: change within 400 days, the span ends at the end of the searched period.
    now: OnCallSpan
    #: Next span in which any user is on call. None if no such span starts within 400 days.
    next: OnCallSpan | None
    #: True if the users on call change within 400 days.
    changes: bool


def find_users_on_call(
    schedule_ids: Collection[int], *, moment: datetime, session: Session
) -> Mapping[int, tuple[int, ...]]:
    """Return the IDs of the users on call, by schedule ID.

    The list of users is empty in a gap, and for deleted schedules.
    """
    plans = load_schedule_plans(
        schedule_ids, Period(moment, moment + _INSTANT), session=session, now=moment
    )
    return {
        each: compute_spans(plans[each], moment, moment + _INSTANT)[0].user_ids
        if each in plans
        else ()
        for each in schedule_ids
    }


def find_current_and_next_users(
    schedule_ids: Collection[int], *, moment: datetime, session: Session
) -> Mapping[int, _CurrentAndNextUsers]:
    """Return the current and next users on call, by schedule ID.

    Unknown schedules are left out.
    """
    within = Period(moment, moment + _SEARCHED_PERIODS[-1])
    plans = load_schedule_plans(schedule_ids, within, session=session, now=moment)
    return {each: _compute_current_and_next(plan, moment) for each, plan in plans.items()}


def _compute_current_and_next(plan: SchedulePlan, moment: datetime) -> _CurrentAndNextUsers:
    found: tuple[OnCallSpan, ...] = ()
    for horizon in _SEARCHED_PERIODS:
        found = merge_spans_by_users(compute_spans(plan, moment, moment + horizon))
        # The end of the last span is unknown.
        if any(span.duties for span in found[1:-1]):
            break
    following = next((span for span in found[1:] if span.duties), None)
    return _CurrentAndNextUsers(now=found[0], next=following, changes=len(found) > 1)


class _ScheduleReference(Protocol):
    """The attributes of a schedule that are copied to `ScheduleOnCall` resources."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def time_zone(self) -> str: ...
    @property
    def group(self) -> str | None: ...


def build_schedules_on_call(
    work: UnitOfWork, schedules: Sequence[_ScheduleReference]
) -> Sequence[ScheduleOnCall]:
    """Return the current and next users on call in schedules, in the order of the schedules."""
    found = find_current_and_next_users(
        [each.id for each in schedules], moment=work.now, session=work.session
    )
    both = (span for each in found.values() for span in (each.now, each.next) if span)
    named = _find_span_users(work, both)
    return tuple(
        ScheduleOnCall(
            schedule_id=schedule.id,
            group=schedule.group,
            name=schedule.name,
            time_zone=schedule.time_zone,
            now=OnCallNow(
                **_build_on_call_fields(each.now, named),
                until=each.now.end if each.changes else None,
            ),
            next=_build_shift(each.next, named) if each.next else None,
        )
        for schedule in schedules
        if (each := found.get(schedule.id))
    )


def list_schedules_on_call(
    work: UnitOfWork, holder: ProjectOrGroup, *, with_groups_above: bool = True
) -> Sequence[ScheduleOnCall]:
    """Return the current and next users on call in the schedules of a project or group.

    The schedules are ordered by name.
    """
    found = list_all_schedules(work, holder, with_groups_above=with_groups_above)
    return build_schedules_on_call(work, found)


def list_schedule_shifts(
    work: UnitOfWork, schedule_id: int, period: Period
) -> Sequence[OnCallShift]:
    """Return the shifts of a schedule in a period, including gaps."""
    return find_shifts_by_schedule(work, [schedule_id], period).get(schedule_id, ())


def find_shifts_by_schedule(
    work: UnitOfWork, schedule_ids: Collection[int], period: Period
) -> Mapping[int, Sequence[OnCallShift]]:
    """Return the shifts in a period, including gaps, by schedule ID.

    Unknown schedules are left out.
    """
    plans = load_schedule_plans(schedule_ids, period, session=work.session, now=work.now)
    found = {each: compute_spans(plan, period.start, period.end) for each, plan in plans.items()}
    named = _find_span_users(work, chain.from_iterable(found.values()))
    return {each: tuple(_build_shift(span, named) for span in some) for each, some in found.items()}


def load_lanes(
    work: UnitOfWork, schedule_id: int, period: Period, *, gaps_from: datetime
) -> tuple[Sequence[Lane], Mapping[int, UserReference], Mapping[int, Sequence[Period]]]:
    """Return the lanes of a schedule in a period, with its users and absences by user ID."""
    plans = load_schedule_plans([schedule_id], period, session=work.session, now=work.now)
    plan = plans[schedule_id]
    absences = load_absences(period, session=work.session, user_ids=plan.eligible_periods.keys())
    lanes = build_lanes(plan, period, gaps_from=gaps_from, absences=absences)
    ids = (bar.duty.user_id for lane in lanes for bar in lane.bars if bar.duty)
    named = find_user_references(ids, base_url=work.settings.base_url, session=work.session)
    return lanes, named, absences


def compute_balance(shifts: Iterable[OnCallShift], period: Period) -> OnCallBalance:
    """Compute the distribution of on-call time among users.

    `shifts` must contain the shifts in `period`.
    """
    seconds, people = Counter[int](), dict[int, UserReference]()
    for each in shifts:
        length = int((each.ends_at - each.starts_at).total_seconds())
        for user_id in [user.id for user in each.users] or [_GAP_USER_ID]:
            seconds[user_id] += length
        people |= {user.id: user for user in each.users}
    # The total time of a schedule that was created less than a second ago is 0.
    gap_seconds, whole = seconds.pop(_GAP_USER_ID, 0), seconds.total() or 1
    return OnCallBalance(
        starts_at=period.start,
        ends_at=period.end,
        gap_seconds=gap_seconds,
        users=tuple(
            TimeOnCall(user=people[user_id], seconds=length, share=round(length / whole, 4))
            for user_id, length in seconds.most_common()
        ),
    )


def _find_span_users(
    work: UnitOfWork, on_call_spans: Iterable[OnCallSpan]
) -> Mapping[int, UserReference]:
    ids = (user_id for each in on_call_spans for user_id in each.user_ids)
    return find_user_references(ids, base_url=work.settings.base_url, session=work.session)


def _build_shift(span: OnCallSpan, users_by_id: Mapping[int, UserReference]) -> OnCallShift:
    return OnCallShift(
        starts_at=span.start,
        ends_at=span.end,
        is_gap=not span.duties,
        **_build_on_call_fields(span, users_by_id),
    )


def _build_on_call_fields(
    span: OnCallSpan, users_by_id: Mapping[int, UserReference]
) -> dict[str, Any]:
    on_call = [
        OnCallUser(
            user=users_by_id[each.user_id], source=each.source.value, source_id=each.source_id
        )
        for each in span.duties
    ]
    return {"users": tuple(each.user for each in on_call), "on_call": tuple(on_call)}


@dataclass(frozen=True, kw_only=True)
class UserDuty:
    """The current or next shift of a user in a schedule."""

    schedule_id: int
    schedule: str
    time_zone: str
    place: Namespace
    is_now: bool
    #: Start of the next shift. For a current shift, this is the time of the query.
    start: datetime
    #: End of the shift. None for the current shift if nothing changes within 400 days.
    end: datetime | None


def find_user_duties(user_id: int, *, session: Session, now: datetime) -> tuple[UserDuty, ...]:
    """Return the current shifts of a user, followed by the next shifts, earliest first."""
    rows = find_user_schedules(user_id, session=session, now=now)
    plans = find_current_and_next_users([row.id for row in rows], moment=now, session=session)
    found = [
        UserDuty(
            schedule_id=row.id,
            schedule=row.name,
            time_zone=row.time_zone,
            place=row.place,
            is_now=is_now,
            start=start,
            end=end,
        )
        for row in rows
        if row.id in plans
        for is_now, start, end in _find_duty(plans[row.id], user_id)
    ]
    return tuple(sorted(found, key=lambda duty: (not duty.is_now, duty.start, duty.schedule)))


def _find_duty(
    plan: _CurrentAndNextUsers, user_id: int
) -> list[tuple[bool, datetime, datetime | None]]:
    if user_id in plan.now.user_ids:
        return [(True, plan.now.start, plan.now.end if plan.changes else None)]
    if plan.next is not None and user_id in plan.next.user_ids:
        return [(False, plan.next.start, plan.next.end)]
    return []


class UserSchedule(NamedTuple):
    """A schedule that includes a user."""

    id: int
    name: str
    time_zone: str
    place: Namespace

    @property
    def group(self) -> str | None:
        """Path of the group that owns the schedule, or None if a project owns the schedule."""
        return self.place.path if self.place.is_group else None


def find_user_schedules(user_id: int, *, session: Session, now: datetime) -> Sequence[UserSchedule]:
    """Return the schedules in which a user has a current or future turn, override or swap."""
    is_in_force = or_(OnCallRotation.valid_until.is_(None), OnCallRotation.valid_until > now)
    turns = (
        select(OnCallRotation.schedule_id)
        .join(OnCallTurn, OnCallTurn.rotation_id == OnCallRotation.id)
        .where(OnCallTurn.user_id == user_id, is_in_force)
    )
    overrides = select(OnCallOverride.schedule_id).where(
        OnCallOverride.user_id == user_id, OnCallOverride.ends_at > now
    )
    is_mine = or_(OnCallSwap.user_id == user_id, OnCallSwap.other_user_id == user_id)
    swaps = select(OnCallSwap.schedule_id).where(is_mine, OnCallSwap.over_at > now)
    ids = session.scalars(union(turns, overrides, swaps)).all()
    found = load_user_schedules(ids, session=session)
    return sorted(found, key=lambda each: fold_text(each.place.path))


def load_user_schedules(ids: Collection[int], *, session: Session) -> Sequence[UserSchedule]:
    """Return schedules with their owners, ordered by name.

    Schedules of archived projects are left out.
    """
    places = find_schedule_owners(ids, session=session)
    rows = session.execute(
        select(ScheduleRow.id, ScheduleRow.name, ScheduleRow.time_zone)
        .outerjoin(Project, Project.id == ScheduleRow.project_id)
        .where(ScheduleRow.id.in_(places), Project.archived_at.is_(None))
        .order_by(ScheduleRow.name_key, ScheduleRow.id)
    )
    return [UserSchedule(*row, place=places[row.id]) for row in rows]
