"""The stored schedules of a project, with their present rotations."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select

from domain.access.actor import Work
from domain.accounts.references import user_references
from domain.alerts.reading.text import storable
from domain.database.paging import LARGEST_ID
from domain.errors import NotFoundError
from domain.on_call.reading import current_rotations
from domain.on_call.types import OnCallRotation, OnCallSchedule
from domain.projects.views import ProjectView
from domain.types.base import columns_of
from models import OnCallSchedule as ScheduleRow
from models.folding import fold

#: How long past shifts can be told: overrides, swaps and former rotations are kept.
PAST_KEPT_FOR = timedelta(days=400)


def all_schedules(work: Work, project: ProjectView) -> Sequence[OnCallSchedule]:
    """Return all schedules of a project by name; there are at most MOST_SCHEDULES."""
    rows = work.session.scalars(
        select(ScheduleRow)
        .where(ScheduleRow.project_id == project.id)
        .order_by(ScheduleRow.name_key, ScheduleRow.id)
    ).all()
    return schedules_of(work, project, rows)


def get_schedule(work: Work, project: ProjectView, schedule_id: int | str) -> OnCallSchedule:
    """Return a schedule of a project by its id or name, or raise NotFoundError."""
    return schedules_of(work, project, [get_row(work, project, schedule_id)])[0]


def find_schedule(work: Work, project: ProjectView, name: str) -> OnCallSchedule | None:
    """Return the schedule with this name in any case, or None."""
    row = _find_row(work, project, name)
    return schedules_of(work, project, [row])[0] if row else None


def get_row(work: Work, project: ProjectView, schedule_id: int | str) -> ScheduleRow:
    """Return the schedule with this name in any case, or with this id; raise NotFoundError."""
    if isinstance(schedule_id, str):
        if (found := _find_row(work, project, schedule_id)) is not None:
            return found
        if not (schedule_id.isascii() and schedule_id.isdecimal()):
            message = f"{project.path} has no on-call schedule named {schedule_id[:100]}."
            raise NotFoundError(message)
    number = int(schedule_id)
    row = work.session.get(ScheduleRow, number) if number <= LARGEST_ID else None
    if row is None or row.project_id != project.id:
        message = "On-call schedule not found in this project."
        raise NotFoundError(message)
    return row


def lock_row(work: Work, project: ProjectView, schedule_id: int | str) -> ScheduleRow:
    """Return a schedule whose row is locked: of changes at once, one waits for the other."""
    row = get_row(work, project, schedule_id)
    work.session.refresh(row, with_for_update=True)
    return row


def _find_row(work: Work, project: ProjectView, name: str) -> ScheduleRow | None:
    found: ScheduleRow | None = work.session.scalar(
        select(ScheduleRow).where(
            ScheduleRow.project_id == project.id,
            ScheduleRow.name_key == fold(storable(name).strip()),
        )
    )
    return found


def schedules_of(
    work: Work, project: ProjectView, rows: Sequence[ScheduleRow]
) -> Sequence[OnCallSchedule]:
    """Return rows as schedules."""
    session, base_url = work.session, work.settings.base_url
    plans = current_rotations([row.id for row in rows], session=session)
    ids = (each for found in plans.values() for plan in found for each in plan.user_ids)
    named = user_references(ids, base_url=base_url, session=session)
    return tuple(
        OnCallSchedule(
            **columns_of(row, OnCallSchedule),
            rotations=tuple(OnCallRotation.of(each, named) for each in plans.get(row.id, ())),
            web_url=f"{base_url}/{project.path}/-/on_call/schedules/{row.id}",
        )
        for row in rows
    )
