"""Conflicts: periods in which users are on call and absent, and notices about conflicts.

An absence does not change who is on call. Absent users are still paged, since otherwise nobody
might be paged.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.accounts.profiles import find_user_references
from domain.core.types.base import ListPage, OffsetQuery
from domain.paging.on_call import notices
from domain.paging.on_call.absence_types import OnCallConflict
from domain.paging.on_call.notices import ShiftChange
from domain.paging.on_call.rotation_turns import find_user_turns
from domain.paging.on_call.schedule_queries import load_absences, load_schedule_plans
from domain.paging.on_call.schedule_values import Period, SchedulePlan
from domain.paging.on_call.schedules import get_schedule, get_schedule_row
from domain.paging.on_call.shifts import find_user_schedules, load_user_schedules
from domain.projects.access import get_group, get_project
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import ProjectOrGroup, Viewer
from models import OnCallConflictNotice

#: Length of the future period with conflicts on pages and in the API.
_SHOWN_PERIOD = timedelta(days=56)
#: Time before a conflict from which notices are sent, and time of the reminder.
_NOTICE_PERIOD, _REMINDER_PERIOD = timedelta(days=14), timedelta(days=1)
#: Past period that is searched for the start of a current conflict.
_LOOKBACK = timedelta(days=14)
_MAX_MAINTAINERS = 50


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """The part of a turn in which its user is absent."""

    schedule_id: int
    user_id: int
    during: Period


@read_action("on_call_conflicts.index")
def list_conflicts(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: OffsetQuery
) -> ListPage[OnCallConflict]:
    """List the conflicts of shifts and absences in the next eight weeks."""
    schedule = get_schedule_row(work, holder, schedule_id)
    found = find_conflicts(
        [schedule.id], until=work.now + _SHOWN_PERIOD, session=work.session, now=work.now
    )
    return query.build_page(build_conflicts(work, found))


def list_user_conflicts(
    work: UnitOfWork, schedule_ids: Collection[int]
) -> tuple[OnCallConflict, ...]:
    """Return the actor's conflicts in schedules."""
    found = find_conflicts(
        schedule_ids,
        until=work.now + _SHOWN_PERIOD,
        session=work.session,
        now=work.now,
        user_ids=[work.actor.id or 0],
    )
    return build_conflicts(work, found)


def build_conflicts(work: UnitOfWork, conflicts: Sequence[Conflict]) -> tuple[OnCallConflict, ...]:
    """Return the resources of conflicts, with the names of their users."""
    named = find_user_references(
        {each.user_id for each in conflicts},
        base_url=work.settings.base_url,
        session=work.session,
    )
    return tuple(
        OnCallConflict(
            schedule_id=each.schedule_id,
            user=named[each.user_id],
            starts_at=each.during.start,
            ends_at=each.during.end,
        )
        for each in conflicts
    )


def find_conflicts(
    schedule_ids: Collection[int],
    *,
    until: datetime,
    session: Session,
    now: datetime,
    user_ids: Collection[int] | None = None,
) -> Sequence[Conflict]:
    """Return the current and future conflicts in schedules that start before a time.

    If `user_ids` is None, return the conflicts of all users.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    within = Period(today - _LOOKBACK, until)
    absences = load_absences(Period(now, until), session=session, user_ids=user_ids)
    if not absences:
        return ()
    plans = load_schedule_plans(schedule_ids, within, session=session, now=now)
    found = (
        conflict
        for plan in plans.values()
        for conflict in _compute_conflicts(plan, absences, within)
        if conflict.during.end > now
    )
    return sorted(found, key=lambda each: (each.during, each.schedule_id, each.user_id))


def _compute_conflicts(
    plan: SchedulePlan, absences: Mapping[int, Sequence[Period]], period: Period
) -> Iterator[Conflict]:
    for turn in find_user_turns(plan, period):
        for absence in absences.get(turn.duty.user_id, ()):
            parts = [
                part for part in turn.parts if part.start < absence.end and part.end > absence.start
            ]
            if parts:
                during = Period(max(parts[0].start, absence.start), min(parts[-1].end, absence.end))
                yield Conflict(
                    schedule_id=plan.schedule_id, user_id=turn.duty.user_id, during=during
                )


def queue_conflict_notices(work: UnitOfWork, commit_batch: Callable[[], None]) -> int:
    """Queue emails about new conflicts in the next two weeks, and reminders a day before.

    `commit_batch` commits the transaction. Return the number of conflicts with notices.
    """
    session, now = work.session, work.now
    users = load_absences(Period(now, now + _NOTICE_PERIOD), session=session)
    ids = {
        schedule.id
        for user_id in users
        for schedule in find_user_schedules(user_id, session=session, now=now)
    }
    found = find_conflicts(
        ids, until=now + _NOTICE_PERIOD, session=session, now=now, user_ids=users.keys()
    )
    rows = session.scalars(select(OnCallConflictNotice)).all()
    by_schedule: dict[int, list[Conflict]] = defaultdict(list)
    for each in found:
        by_schedule[each.schedule_id].append(each)
    for row in rows:
        # A solved conflict is reported again if it returns.
        if not any(_is_notice_about(row, each) for each in by_schedule[row.schedule_id]):
            session.delete(row)
    count = 0
    for schedule_id, conflicts in by_schedule.items():
        count += _notify_of_conflicts(work, schedule_id, conflicts, rows)
        commit_batch()
    commit_batch()
    return count


def _notify_of_conflicts(
    work: UnitOfWork,
    schedule_id: int,
    conflicts: Sequence[Conflict],
    rows: Sequence[OnCallConflictNotice],
) -> int:
    """Store the new conflicts of a schedule, and queue notices and reminders."""
    new, soon, now = [], [], work.now
    for each in conflicts:
        is_soon = each.during.start <= now + _REMINDER_PERIOD
        row = next((row for row in rows if _is_notice_about(row, each)), None)
        if row is None:
            new.append(each)
            row = OnCallConflictNotice(
                schedule_id=schedule_id,
                user_id=each.user_id,
                starts_at=each.during.start,
                ends_at=each.during.end,
                noticed_at=now,
            )
            work.session.add(row)
        elif is_soon and row.reminded_at is None:
            soon.append(each)
        row.ends_at = max(row.ends_at, each.during.end)
        row.reminded_at = row.reminded_at or (now if is_soon else None)
    work.session.flush()
    for some, is_reminder in ((new, False), (soon, True)):
        if some:
            _queue_notices(work, schedule_id, some, is_reminder=is_reminder)
    return len(new) + len(soon)


def _is_notice_about(row: OnCallConflictNotice, conflict: Conflict) -> bool:
    is_same = (row.schedule_id, row.user_id) == (conflict.schedule_id, conflict.user_id)
    during = conflict.during
    return is_same and row.starts_at < during.end and row.ends_at > during.start


def _queue_notices(
    work: UnitOfWork, schedule_id: int, conflicts: Sequence[Conflict], *, is_reminder: bool
) -> None:
    """Queue emails to the absent users and the Maintainers of a schedule."""
    session = work.session
    # Schedules of archived projects are left out.
    for schedule in load_user_schedules([schedule_id], session=session):
        viewer = Viewer(user_id=None, is_admin=True, today=work.now.date())
        get = get_group if schedule.place.is_group else get_project
        holder = get(schedule.place.path, viewer, session=session)
        change = ShiftChange(work, holder, get_schedule(work, holder, schedule_id))
        able = find_users_with_ability(
            true(),
            Ability.ADMIN_INTEGRATIONS,
            schedule.place,
            session=session,
            today=work.now.date(),
        )
        notices.queue_conflict_notices(
            build_conflicts(work, conflicts),
            change.find_users(sorted(able)[:_MAX_MAINTAINERS]).values(),
            change,
            is_reminder=is_reminder,
        )
