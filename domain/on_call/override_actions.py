"""What can be done with overrides: one user is on call for a time, instead of everybody else."""

from collections.abc import Iterable, Sequence

from sqlalchemy import func, select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.accounts.references import user_references
from domain.audit.events import EventKind
from domain.clock import written
from domain.database.paging import LARGEST_ID, fetch_part
from domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.on_call import notices
from domain.on_call.final_schedule import spans
from domain.on_call.given_times import check_is_not_over, checked_period
from domain.on_call.notices import ShiftChange
from domain.on_call.people import id_of_candidate
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period
from domain.on_call.schedules import get_row, get_schedule
from domain.on_call.types import ChangeQuery, NewOverride, OnCallOverride, OnCallSchedule
from domain.projects.views import ProjectView
from domain.types.base import Found, columns_of
from models import OnCallOverride as OverrideRow

#: Of a schedule, that are not over.
MOST_OVERRIDES = 200
_ORDERS = {"id": OverrideRow.id, "starts_at": OverrideRow.starts_at}


@question("on_call_overrides.index")
def list_overrides(
    work: Work, project: ProjectView, schedule_id: int, query: ChangeQuery
) -> Found[OnCallOverride]:
    """List the overrides of a schedule, those that are over as well."""
    schedule = get_row(work, project, schedule_id)
    here = select(OverrideRow).where(OverrideRow.schedule_id == schedule.id)
    found = fetch_part(here, _ORDERS, query.part, session=work.session)
    items = _shown(work, (row[0] for row in found.items))
    return Found(items=items, total=found.total, next_cursor=found.next_cursor)


@question("on_call_overrides.index")
def overrides_ahead(work: Work, project: ProjectView, schedule_id: int) -> Sequence[OnCallOverride]:
    """Return the overrides of a schedule that are not over, by their start."""
    schedule = get_row(work, project, schedule_id)
    rows = work.session.scalars(
        select(OverrideRow)
        .where(OverrideRow.schedule_id == schedule.id, OverrideRow.ends_at > work.now)
        .order_by(OverrideRow.starts_at, OverrideRow.id)
    )
    return _shown(work, rows)


@question("on_call_overrides.show")
def show_override(
    work: Work, project: ProjectView, schedule_id: int, override_id: int
) -> OnCallOverride:
    """Show an override.

    Raises NotFoundError.
    """
    schedule = get_row(work, project, schedule_id)
    return _shown(work, [_row(work, schedule.id, override_id)])[0]


@action("on_call_overrides.create")
def create_override(
    work: Work, project: ProjectView, schedule_id: int, new: NewOverride
) -> OnCallOverride:
    """Put one user on call for a time, instead of everybody else.

    Members without the Maintainer role can do it for shifts of their own, and where nobody is on
    call. Raises InvalidError, or ForbiddenError for others' shifts.
    """
    schedule = get_schedule(work, project, schedule_id)
    user_id = id_of_candidate(work, project, new.user, field="user")
    during = checked_period(new.starts_at, new.ends_at, fields=("starts_at", "ends_at"))
    check_is_not_over(during, field="ends_at", now=work.now)
    _check_count(work, schedule.id)
    if not may_change_all(work, project):
        _check_shifts(work, schedule.id, during)
    row = OverrideRow(
        schedule_id=schedule.id,
        user_id=user_id,
        starts_at=during.start,
        ends_at=during.end,
        created_by=work.actor.id,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # to learn the id
    made = _shown(work, [row])[0]
    _record(work, project, schedule, made, "created")
    notices.tell(notices.tell_of_override, made, ShiftChange(work, project, schedule))
    return made


@action("on_call_overrides.delete")
def end_override(
    work: Work, project: ProjectView, schedule_id: int, override_id: int
) -> OnCallOverride:
    """Delete an override; one that has begun ends now.

    Returns what it was. Raises NotFoundError, ForbiddenError for one of others, and ConflictError
    for one that is over.
    """
    schedule = get_schedule(work, project, schedule_id)
    row = _row(work, schedule.id, override_id)
    work.session.refresh(row, with_for_update=True)
    if not (may_change_all(work, project) or work.actor.id in (row.user_id, row.created_by)):
        message = "You need the Maintainer role to remove an override of somebody else."
        raise ForbiddenError(message)
    if row.ends_at <= work.now:
        message = "This override has ended, and past shifts do not change."
        raise ConflictError(message)
    ended = _shown(work, [row])[0]
    if row.starts_at < work.now:
        row.ends_at = work.now
    else:
        work.session.delete(row)
    work.session.flush()
    _record(work, project, schedule, ended, "deleted")
    notices.tell(notices.tell_of_ended_override, ended, ShiftChange(work, project, schedule))
    return ended


def may_change_all(work: Work, project: ProjectView) -> bool:
    """Return whether the actor changes the shifts of everybody, not only their own."""
    return work.actor.is_trusted or project.can_maintain


def _row(work: Work, schedule_id: int, override_id: int) -> OverrideRow:
    row = work.session.get(OverrideRow, min(override_id, LARGEST_ID))
    if row is None or row.schedule_id != schedule_id:
        message = "Override not found in this schedule."
        raise NotFoundError(message)
    return row


def _check_count(work: Work, schedule_id: int) -> None:
    ahead = (OverrideRow.schedule_id == schedule_id) & (OverrideRow.ends_at > work.now)
    if (work.session.scalar(select(func.count()).where(ahead)) or 0) >= MOST_OVERRIDES:
        message = f"A schedule can have at most {MOST_OVERRIDES} current and future overrides."
        raise InvalidError(message, field="starts_at")


def _check_shifts(work: Work, schedule_id: int, during: Period) -> None:
    """Raise ForbiddenError if a member without the role would change the shifts of others."""
    within = Period(max(during.start, work.now), during.end)
    plans = read_plans([schedule_id], within, session=work.session, today=work.now.date())
    for span in spans(plans[schedule_id], within.start, within.end):
        if any(user_id != work.actor.id for user_id in span.user_ids):
            message = (
                "Other people are on call in this time. You need the Maintainer role to change "
                "their shifts."
            )
            raise ForbiddenError(message)


def _shown(work: Work, rows: Iterable[OverrideRow]) -> Sequence[OnCallOverride]:
    found = tuple(rows)
    named = user_references(
        (each for row in found for each in (row.user_id, row.created_by) if each),
        base_url=work.settings.base_url,
        session=work.session,
    )
    return tuple(
        OnCallOverride(
            **columns_of(row, OnCallOverride)
            | {"user": named[row.user_id], "created_by": named.get(row.created_by or 0)}
        )
        for row in found
    )


def _record(
    work: Work,
    project: ProjectView,
    schedule: OnCallSchedule,
    override: OnCallOverride,
    change: str,
) -> None:
    details = {
        "change": change,
        "project": project.path,
        "user": override.user.username,
        "starts_at": written(override.starts_at),
        "ends_at": written(override.ends_at),
    }
    work.record(EventKind.ON_CALL_OVERRIDE_CHANGED, subject=schedule.name, details=details)
