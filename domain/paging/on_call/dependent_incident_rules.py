"""Incident rules that page the users on call in a schedule."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.errors import ConflictError
from domain.projects.row_ownership import select_project_ids
from domain.projects.views import ProjectOrGroup
from models import IncidentRule, IncidentRuleResponder, OnCallSchedule, Project


class DependentRule(NamedTuple):
    """A rule, the path of its project, and the schedule that it pages."""

    id: int
    name: str
    path: str
    schedule: str


def find_dependent_rules(
    schedule_ids: Collection[int], holder: ProjectOrGroup, *, session: Session
) -> Sequence[DependentRule]:
    """Return the incident rules in a project, or in projects below a group, that page schedules."""
    rows = session.execute(
        select(IncidentRule.id, IncidentRule.name, Project.path, OnCallSchedule.name)
        .join(IncidentRuleResponder, IncidentRuleResponder.rule_id == IncidentRule.id)
        .join(OnCallSchedule, OnCallSchedule.id == IncidentRuleResponder.schedule_id)
        .join(Project, Project.id == IncidentRule.project_id)
        .where(
            IncidentRuleResponder.schedule_id.in_(schedule_ids),
            IncidentRule.project_id.in_(select_project_ids(holder)),
        )
        .order_by(Project.path_key, IncidentRule.id, OnCallSchedule.id)
    )
    return [DependentRule(*row) for row in rows]


def check_no_dependent_rules(
    schedule_ids: Collection[int], holder: ProjectOrGroup, *, field: str = "", session: Session
) -> None:
    """Check that no incident rule pages any of the schedules.

    Raise ConflictError if a rule pages a schedule.
    """
    found = find_dependent_rules(schedule_ids, holder, session=session)
    if found:
        where = "" if found[0].path == holder.path else f" of {found[0].path}"
        message = (
            f"The incident rule {found[0].name}{where} pages the schedule {found[0].schedule}. "
            "Remove the schedule from the rule first."
        )
        raise ConflictError(message, field=field)
