"""The rules of a project that are on, for whoever looks at alerts that fire."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from
from models import IncidentRule


@dataclass(frozen=True, kw_only=True)
class ActiveRule:
    """A rule that opens incidents."""

    id: int
    name: str
    conditions: Conditions
    #: Whether its incidents are closed when all of their alerts are resolved.
    closes_when_resolved: bool
    #: Whether it opens them for silenced alerts as well, and during maintenance windows.
    opens_when_silenced: bool


def active_rules(project_id: int, *, session: Session) -> tuple[ActiveRule, ...]:
    """Return the rules that are on, in the order in which they are asked: the oldest first."""
    rows = session.scalars(
        select(IncidentRule)
        .where(IncidentRule.project_id == project_id, IncidentRule.is_active)
        .order_by(IncidentRule.id)
    )
    return tuple(
        ActiveRule(
            id=row.id,
            name=row.name,
            conditions=conditions_from(row.conditions),
            closes_when_resolved=row.closes_when_resolved,
            opens_when_silenced=row.opens_when_silenced,
        )
        for row in rows
    )
