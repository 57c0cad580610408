"""Totals of groups and projects."""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models import Group, Project


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The number of groups and projects of the instance."""

    groups: int
    projects: int


def count_namespaces(*, session: Session) -> Totals:
    """Count groups and projects."""
    groups = select(func.count(Group.id)).where(Group.deleted_at.is_(None)).scalar_subquery()
    projects = select(func.count(Project.id)).where(Project.deleted_at.is_(None)).scalar_subquery()
    row = session.execute(select(groups.label("groups"), projects.label("projects"))).one()
    return Totals(groups=row.groups, projects=row.projects)
