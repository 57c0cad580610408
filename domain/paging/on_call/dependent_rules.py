"""The incident rules that page the users on call in a schedule."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.errors import ConflictError
from domain.projects.owners import projects_of
from domain.projects.views import Holder
from models import IncidentRule, IncidentRuleResponder, OnCallSchedule, Project


class CallingRule(NamedTuple):
    """A rule, the path of its project, and the schedule that it pages."""

    id: int
    name: str
    path: str
    schedule: str


def rules_that_call(
    schedule_ids: Collection[int], holder: Holder, *, session: Session
) -> Sequence[CallingRule]:
    """Return the rules of a project, or of the projects below a group, that page schedules."""
    rows = session.execute(
        select(IncidentRule.id, IncidentRule.name, Project.path, OnCallSchedule.name)
        .join(IncidentRuleResponder, IncidentRuleResponder.rule_id == IncidentRule.id)
        .join(OnCallSchedule, OnCallSchedule.id == IncidentRuleResponder.schedule_id)
        .join(Project, Project.id == IncidentRule.project_id)
        .where(
            IncidentRuleResponder.schedule_id.in_(schedule_ids),
            IncidentRule.project_id.in_(projects_of(holder)),
        )
        .order_by(Project.path_key, IncidentRule.id, OnCallSchedule.id)
    )
    return [CallingRule(*row) for row in rows]


def check_not_called(
    schedule_ids: Collection[int], holder: Holder, *, field: str = "", session: Session
) -> None:
    """Raise ConflictError if an incident rule pages one of the schedules."""
    found = rules_that_call(schedule_ids, holder, session=session)
    if found:
        where = "" if found[0].path == holder.path else f" of {found[0].path}"
        message = (
            f"The incident rule {found[0].name}{where} pages the schedule {found[0].schedule}. "
            "Remove the schedule from the rule first."
        )
        raise ConflictError(message, field=field)
