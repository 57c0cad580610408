"""Queries for the handoff notes of schedules."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from domain.access.actor import UnitOfWork
from domain.paging.on_call.schedule_plans import Period
from domain.projects.row_ownership import (
    build_used_by_condition,
    find_group_chain,
    find_group_chains,
)
from domain.projects.views import ProjectOrGroup
from domain.reports.types import HandoverNote
from models import OnCallHandoverNote, OnCallSchedule, User


def select_handoff_notes(owner_condition: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Return a query for handoff notes that meet a condition, with the fields of `HandoverNote`."""
    note = OnCallHandoverNote
    return (
        select(note.id, note.schedule_id, note.text, note.created_at)
        .add_columns(OnCallSchedule.name.label("schedule"), User.username.label("user"))
        .join(OnCallSchedule, OnCallSchedule.id == note.schedule_id)
        .outerjoin(User, User.id == note.user_id)
        .where(owner_condition)
    )


def find_handoff_notes_in_period(
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
    found = select_handoff_notes(used).where(
        note.created_at >= period.start, note.created_at < period.end
    )
    rows = work.session.execute(found.order_by(note.id))
    return list(map(HandoverNote.model_validate, rows))
