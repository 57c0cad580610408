"""What can be done with the rules that open incidents."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.following import Follower, follow
from domain.alerts.matching.conditions import conditions_from
from domain.alerts.reading.text import storable
from domain.audit.events import EventKind
from domain.database.paging import fetch_part
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.incidents.links import stop_following
from domain.incidents.listing import lock_incidents
from domain.incidents.types import (
    LONGEST_RULE_NAME,
    IncidentRule,
    IncidentRuleChange,
    IncidentRuleQuery,
    NewIncidentRule,
)
from domain.projects.views import ProjectView
from domain.types.base import Found
from models import IncidentRule as RuleRow

MOST_RULES = 50


@question("incident_rules.index")
def list_rules(work: Work, project: ProjectView, query: IncidentRuleQuery) -> Found[IncidentRule]:
    """List the rules that open incidents, in the order in which they are asked."""
    found = fetch_part(_rules(project), {"id": RuleRow.id}, query.part, session=work.session)
    return Found.of(found, _rule)


@question("incident_rules.index")
def list_all_rules(work: Work, project: ProjectView) -> Sequence[IncidentRule]:
    """Return all rules of a project, in the order in which they are asked: the oldest first."""
    rows = work.session.execute(_rules(project).order_by(RuleRow.id))
    return [_rule(row) for row in rows]


@question("incident_rules.show")
def show_rule(work: Work, project: ProjectView, rule_id: int) -> IncidentRule:
    """Show a rule.

    Raises NotFoundError.
    """
    row = work.session.execute(_rules(project).where(RuleRow.id == rule_id)).first()
    if row is None:
        raise _not_found(rule_id)
    return _rule(row)


@question("incident_rules.index")
def find_rule_name(work: Work, project: ProjectView, rule_id: int) -> str | None:
    """Return the name of the rule that opened an incident, or None if it is gone."""
    name = select(RuleRow.name).where(RuleRow.project_id == project.id, RuleRow.id == rule_id)
    return work.session.scalar(name)


@action("incident_rules.create")
def create_rule(work: Work, project: ProjectView, new: NewIncidentRule) -> IncidentRule:
    """Create a rule for new alerts.

    Raises InvalidError, or ConflictError for a name that another rule has.
    """
    lock_incidents(project.id, session=work.session)
    count = select(func.count()).where(RuleRow.project_id == project.id)
    if (work.session.scalar(count) or 0) >= MOST_RULES:
        raise InvalidError(f"A project can have at most {MOST_RULES} rules.", field="name")
    row = RuleRow(project_id=project.id, created_at=work.now)
    _store(work, project, row, new, EventKind.INCIDENT_RULE_CREATED)
    return show_rule(work, project, row.id)


@action("incident_rules.change")
def change_rule(
    work: Work, project: ProjectView, rule_id: int, change: IncidentRuleChange
) -> IncidentRule:
    """Change a rule; incidents that it opened stay as they are.

    Raises InvalidError, NotFoundError, or ConflictError for a name that another rule has.
    """
    row = _lock(work, project, rule_id)
    present = dict(show_rule(work, project, rule_id))
    wanted = NewIncidentRule.model_validate({**present, **change.given})
    _store(work, project, row, wanted, EventKind.INCIDENT_RULE_CHANGED)
    return show_rule(work, project, rule_id)


@action("incident_rules.delete")
def delete_rule(work: Work, project: ProjectView, rule_id: int) -> IncidentRule:
    """Delete a rule; incidents that it opened are kept.

    Returns it as it was; raises NotFoundError.
    """
    row = _lock(work, project, rule_id)
    rule = show_rule(work, project, rule_id)
    _record(work, project, row, EventKind.INCIDENT_RULE_REMOVED)
    work.session.delete(row)
    work.session.flush()
    stop_following(project.id, session=work.session)
    return rule


def _rules(project: ProjectView) -> Select[*tuple[Any, ...]]:
    return select(
        *RuleRow.__table__.columns,
        RuleRow.closes_when_resolved.label("close_when_resolved"),
        RuleRow.opens_when_silenced.label("open_when_silenced"),
        RuleRow.quiets_alerts.label("quiet_alerts"),
        RuleRow.is_active.label("active"),
    ).where(RuleRow.project_id == project.id)


def _rule(row: Row[*tuple[Any, ...]]) -> IncidentRule:
    conditions = conditions_from(row.conditions).to_json()
    return IncidentRule.model_validate({**row._asdict(), **conditions})


def _lock(work: Work, project: ProjectView, rule_id: int) -> RuleRow:
    lock_incidents(project.id, session=work.session)
    row = work.session.scalar(
        select(RuleRow).where(RuleRow.project_id == project.id, RuleRow.id == rule_id)
    )
    if row is None:
        raise _not_found(rule_id)
    return row


def _not_found(rule_id: int) -> NotFoundError:
    return NotFoundError(f"Incident rule {rule_id} not found in this project.")


def _store(
    work: Work, project: ProjectView, row: RuleRow, wanted: NewIncidentRule, kind: EventKind
) -> None:
    """Store and record what a rule is, unless it is that already."""
    name = _checked_name(wanted.name)
    values = {
        "name": name,
        "conditions": wanted.conditions().to_json(),
        "closes_when_resolved": wanted.close_when_resolved,
        "opens_when_silenced": wanted.open_when_silenced,
        "quiets_alerts": wanted.quiet_alerts,
        "is_active": wanted.active,
    }
    if all(getattr(row, field) == value for field, value in values.items()):
        return
    try:
        with work.session.begin_nested():
            work.session.add(row)
            row.updated_at = work.now
            for field, value in values.items():
                setattr(row, field, value)
    except IntegrityError as error:
        message = f"A rule with the name “{name}” already exists."
        raise ConflictError(message, field="name") from error
    # Alerts are followed for as long as a rule may open incidents.
    follow(project.id, Follower.INCIDENTS, session=work.session)
    stop_following(project.id, session=work.session)
    _record(work, project, row, kind)


def _checked_name(name: str) -> str:
    checked = storable(name).strip()
    if not checked or len(checked) > LONGEST_RULE_NAME:
        raise InvalidError(f"A name has 1 to {LONGEST_RULE_NAME} characters.", field="name")
    return checked


def _record(work: Work, project: ProjectView, row: RuleRow, kind: EventKind) -> None:
    details = {
        "project": project.path,
        "id": row.id,
        **conditions_from(row.conditions).to_json(),
        "close_when_resolved": row.closes_when_resolved,
        "open_when_silenced": row.opens_when_silenced,
        "quiet_alerts": row.quiets_alerts,
        "active": row.is_active,
    }
    work.record(kind, subject=row.name, details=details)
