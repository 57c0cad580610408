"""Finds conflicts, in which users are both on call and absent, and queues notices about them.

An absence does not change who is on call. Absent users are still paged, since otherwise nobody
might be paged.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import select, true

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.accounts.profiles import find_user_references
from domain.core.types.pagination import ListPage, OffsetQuery
from domain.paging.on_call import shift_change_notices
from domain.paging.on_call.absences.types import OnCallConflict
from domain.paging.on_call.rotation_turns import find_user_turns
from domain.paging.on_call.schedule_plans import Period, SchedulePlan
from domain.paging.on_call.schedule_queries import load_absences, load_schedule_plans
from domain.paging.on_call.schedules import get_schedule, get_schedule_row
from domain.paging.on_call.shift_change_notices import ShiftChangeContext
from domain.paging.on_call.shifts import find_user_schedules, load_user_schedules
from domain.projects.access import get_group, get_project
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import ProjectOrGroup, Viewer
from models import OnCallConflictNotice

#: Length of the future period for which pages and the API show conflicts.
_SHOWN_PERIOD = timedelta(days=56)
#: Time before a conflict at which notices are first sent, and at which the reminder is sent.
_NOTICE_PERIOD, _REMINDER_PERIOD = timedelta(days=14), timedelta(days=1)
#: Past period that is searched for the start of a current conflict.
_LOOKBACK = timedelta(days=14)
_MAX_MAINTAINERS = 50


@read_action("on_call_conflicts.index")
def list_conflicts(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: OffsetQuery
) -> ListPage[OnCallConflict]:
    """List the conflicts between shifts and absences in the next eight weeks."""
    schedule = get_schedule_row(work, holder, schedule_id)
    return query.build_page(find_conflicts(work, [schedule.id]))


def find_conflicts(
    work: UnitOfWork,
    schedule_ids: Collection[int],
    *,
    within: timedelta = _SHOWN_PERIOD,
    user_ids: Collection[int] | None = None,
) -> tuple[OnCallConflict, ...]:
    """Return the current and future conflicts in schedules, by default for all users."""
    session, now, until = work.session, work.now, work.now + within
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    period = Period(today - _LOOKBACK, until)
    plans = load_schedule_plans(schedule_ids, period, session=session, now=now)
    users = {user_id for plan in plans.values() for user_id in plan.eligible_periods}
    users &= set(users if user_ids is None else user_ids)
    absences = load_absences(Period(now, until), session=session, user_ids=users)
    found = [
        (during, plan.schedule_id, user_id)
        for plan in plans.values()
        for during, user_id in _compute_conflicts(plan, absences, period)
        if during.end > now
    ]
    named = find_user_references(
        {user_id for *_, user_id in found}, base_url=work.settings.base_url, session=session
    )
    return tuple(
        OnCallConflict(
            schedule_id=schedule_id,
            user=named[user_id],
            starts_at=during.start,
            ends_at=during.end,
        )
        for during, schedule_id, user_id in sorted(found)
    )


def _compute_conflicts(
    plan: SchedulePlan, absences: Mapping[int, Sequence[Period]], period: Period
) -> Iterator[tuple[Period, int]]:
    """Yield the part of each turn in which its user is absent, with the ID of the user."""
    for turn in find_user_turns(plan, period):
        for absence in absences.get(turn.duty.user_id, ()):
            parts = [
                part for part in turn.parts if part.start < absence.end and part.end > absence.start
            ]
            if parts:
                start, end = max(parts[0].start, absence.start), min(parts[-1].end, absence.end)
                yield Period(start, end), turn.duty.user_id


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
    found = find_conflicts(work, ids, within=_NOTICE_PERIOD)
    rows = session.scalars(select(OnCallConflictNotice)).all()
    by_schedule: dict[int, list[OnCallConflict]] = defaultdict(list)
    for each in found:
        by_schedule[each.schedule_id].append(each)
    for row in rows:
        # A resolved conflict is reported again if it recurs.
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
    conflicts: Sequence[OnCallConflict],
    rows: Sequence[OnCallConflictNotice],
) -> int:
    """Store the new conflicts of a schedule, and queue notices and reminders."""
    new, soon, now = [], [], work.now
    for each in conflicts:
        is_soon = each.starts_at <= now + _REMINDER_PERIOD
        row = next((row for row in rows if _is_notice_about(row, each)), None)
        if row is None:
            new.append(each)
            row = OnCallConflictNotice(
                schedule_id=schedule_id,
                user_id=each.user.id,
                starts_at=each.starts_at,
                ends_at=each.ends_at,
                noticed_at=now,
            )
            work.session.add(row)
        elif is_soon and row.reminded_at is None:
            soon.append(each)
        # If a resolved part of the conflict recurs, it counts as a new conflict.
        row.ends_at = each.ends_at
        row.reminded_at = row.reminded_at or (now if is_soon else None)
    work.session.flush()
    for some, is_reminder in ((new, False), (soon, True)):
        if some:
            _queue_notices(work, schedule_id, some, is_reminder=is_reminder)
    return len(new) + len(soon)


def _is_notice_about(row: OnCallConflictNotice, conflict: OnCallConflict) -> bool:
    is_same = (row.schedule_id, row.user_id) == (conflict.schedule_id, conflict.user.id)
    return is_same and row.starts_at < conflict.ends_at and row.ends_at > conflict.starts_at


def _queue_notices(
    work: UnitOfWork, schedule_id: int, conflicts: Sequence[OnCallConflict], *, is_reminder: bool
) -> None:
    """Queue emails to the absent users and the Maintainers of a schedule."""
    session, today = work.session, work.now.date()
    # Schedules of archived projects are left out.
    for schedule in load_user_schedules([schedule_id], session=session):
        viewer = Viewer(user_id=None, is_admin=True, today=today)
        get = get_group if schedule.place.is_group else get_project
        holder = get(schedule.place.path, viewer, session=session)
        change = ShiftChangeContext(work, holder, get_schedule(work, holder, schedule_id))
        able = find_users_with_ability(
            true(), Ability.ADMIN_INTEGRATIONS, schedule.place, session=session, today=today
        )
        maintainers = change.find_users(sorted(able)[:_MAX_MAINTAINERS]).values()
        shift_change_notices.queue_conflict_notices(
            conflicts, maintainers, change, is_reminder=is_reminder
        )
