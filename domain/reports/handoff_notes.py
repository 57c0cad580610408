"""Queries for the handoff notes of schedules."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from domain.access.actor import UnitOfWork
from domain.paging.on_call.schedule_values import Period
from domain.projects.owners import (
    build_owner_match_condition,
    build_used_by_condition,
    find_group_chain,
    find_group_chains,
)
from domain.projects.views import ProjectOrGroup
from domain.reports.types import HandoverNote
from models import OnCallHandoverNote, OnCallSchedule, User

#: Maximum number of notes that are shown with a schedule.
_MAX_SHOWN_NOTES = 5


def select_notes(owner_condition: ColumnElement[bool]) -> Select[OnCallHandoverNote, str, str]:
    """Return a query for matching notes of schedules, with the fields of `HandoverNote`."""
    note = OnCallHandoverNote
    return (
        select(note, OnCallSchedule.name.label("schedule"), User.username.label("user"))
        .join(OnCallSchedule, OnCallSchedule.id == note.schedule_id)
        .outerjoin(User, User.id == note.user_id)
        .where(owner_condition)
    )


def build_note(row: Any) -> HandoverNote:
    """Convert a selected row to a handoff note."""
    note: OnCallHandoverNote = row[0]
    return HandoverNote(
        id=note.id,
        schedule_id=note.schedule_id,
        schedule=row.schedule,
        user=row.user,
        text=note.text,
        created_at=note.created_at,
    )


def find_notes_in_period(
    work: UnitOfWork, holder: ProjectOrGroup, project_ids: Collection[int], period: Period
) -> list[HandoverNote]:
    """Return the notes that were created in a period, in chronological order.

    The notes belong to schedules that are used by the project or group, or by a project in the
    group.
    """
    note = OnCallHandoverNote
    own = find_group_chain(holder, session=work.session)
    below = find_group_chains(project_ids, session=work.session) if holder.is_group else {}
    used = build_used_by_condition(OnCallSchedule, [own, *below.values()])
    found = select_notes(used).where(note.created_at >= period.start, note.created_at < period.end)
    return list(map(build_note, work.session.execute(found.order_by(note.id))))


def find_latest_notes(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int
) -> list[HandoverNote]:
    """Return the latest notes of a schedule, newest first."""
    note = OnCallHandoverNote
    here = build_owner_match_condition(OnCallSchedule, holder)
    found = select_notes(here).where(note.schedule_id == schedule_id)
    newest = found.order_by(note.id.desc()).limit(_MAX_SHOWN_NOTES)
    return list(map(build_note, work.session.execute(newest)))
