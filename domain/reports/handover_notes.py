"""Stored handoff notes of schedules."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from domain.access.actor import Work
from domain.paging.on_call.schedule_values import Period
from domain.projects.owners import belongs_to, is_used_by, lineage_of, lineages
from domain.projects.views import Holder
from domain.reports.types import HandoverNote
from models import OnCallHandoverNote, OnCallSchedule, User

#: Maximum number of notes that are shown with a schedule.
_MOST_SHOWN = 5


def selected_notes(here: ColumnElement[bool]) -> Select[OnCallHandoverNote, str, str]:
    """Select the notes of some schedules with the fields of `HandoverNote`."""
    note = OnCallHandoverNote
    return (
        select(note, OnCallSchedule.name.label("schedule"), User.username.label("user"))
        .join(OnCallSchedule, OnCallSchedule.id == note.schedule_id)
        .outerjoin(User, User.id == note.user_id)
        .where(here)
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


def notes_of_period(
    work: Work, holder: Holder, project_ids: Collection[int], within: Period
) -> list[HandoverNote]:
    """Return the notes that were created in a period, in order of time.

    The notes belong to schedules that the project or group, or a project below it, uses.
    """
    note = OnCallHandoverNote
    own = lineage_of(holder, session=work.session)
    below = lineages(project_ids, session=work.session) if holder.is_group else {}
    used = is_used_by(OnCallSchedule, [own, *below.values()])
    found = selected_notes(used).where(
        note.created_at >= within.start, note.created_at < within.end
    )
    return list(map(note_of, work.session.execute(found.order_by(note.id))))


def latest_notes(work: Work, holder: Holder, schedule_id: int) -> list[HandoverNote]:
    """Return the latest notes of a schedule, newest first."""
    note = OnCallHandoverNote
    here = belongs_to(OnCallSchedule, holder)
    found = selected_notes(here).where(note.schedule_id == schedule_id)
    newest = found.order_by(note.id.desc()).limit(_MOST_SHOWN)
    return list(map(note_of, work.session.execute(newest)))
