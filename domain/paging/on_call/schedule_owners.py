"""Queries for the projects and groups that own schedules."""

from collections.abc import Collection, Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.projects.views import Namespace
from models import Group, OnCallSchedule, Project


def find_schedule_owners(ids: Collection[int], *, session: Session) -> Mapping[int, Namespace]:
    """Return the owners of schedules, by schedule ID.

    Deleted schedules and owners are left out.
    """
    rows = session.execute(
        select(
            OnCallSchedule.id,
            Project.id.label("project_id"),
            Group.id.label("group_id"),
            func.coalesce(Project.path, Group.path).label("path"),
        )
        .outerjoin(Project, Project.id == OnCallSchedule.project_id)
        .outerjoin(Group, Group.id == OnCallSchedule.group_id)
        .where(OnCallSchedule.id.in_(ids), Project.deleted_at.is_(None), Group.deleted_at.is_(None))
    )
    return {
        row.id: Namespace(project_id=row.project_id, group_id=row.group_id, path=row.path)
        for row in rows
    }
