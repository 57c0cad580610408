"""The stored hand-over notes of schedules."""

from typing import Any

from sqlalchemy import Select, select

from domain.access.actor import Work
from domain.on_call.plans import Period
from domain.projects.views import ProjectView
from domain.reports.types import HandoverNote
from models import OnCallHandoverNote, OnCallSchedule, User

#: So many are shown with a schedule.
_MOST_SHOWN = 5


def selected_notes(project: ProjectView) -> Select[OnCallHandoverNote, str, str]:
    """Return the notes of a project with the fields of `HandoverNote`."""
    note = OnCallHandoverNote
    return (
        select(note, OnCallSchedule.name.label("schedule"), User.username.label("user"))
        .join(OnCallSchedule, OnCallSchedule.id == note.schedule_id)
        .outerjoin(User, User.id == note.user_id)
        .where(OnCallSchedule.project_id == project.id)
    )


def note_of(row: Any) -> HandoverNote:
    """Return the note of a selected row."""
    note: OnCallHandoverNote = row[0]
    return HandoverNote(
        id=note.id,
        schedule_id=note.schedule_id,
        schedule=row.schedule,
        user=row.user,
        text=note.text,
        created_at=note.created_at,
    )


def notes_of_period(work: Work, project: ProjectView, within: Period) -> list[HandoverNote]:
    """Return the notes that were left in a period, in order of time."""
    note = OnCallHandoverNote
    found = selected_notes(project).where(
        note.created_at >= within.start, note.created_at < within.end
    )
    return list(map(note_of, work.session.execute(found.order_by(note.id))))


def latest_notes(work: Work, project: ProjectView, schedule_id: int) -> list[HandoverNote]:
    """Return the latest notes of a schedule, the newest first."""
    note = OnCallHandoverNote
    found = selected_notes(project).where(note.schedule_id == schedule_id)
    newest = found.order_by(note.id.desc()).limit(_MOST_SHOWN)
    return list(map(note_of, work.session.execute(newest)))
