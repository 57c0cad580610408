"""/api/v4/projects/:id/incident_rules: which alerts open incidents."""

from flask import Blueprint

from domain.audit.events import EventKind
from domain.database.paging import LARGEST_ID
from domain.incidents import rules as domain
from domain.incidents.events import rule_event
from domain.projects.views import ProjectView
from web.api.operations import Found, operation
from web.api.schemas.incidents.incident_rules import (
    IncidentRule,
    IncidentRuleBody,
    IncidentRuleChange,
    IncidentRuleQuery,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now

incident_rules = Blueprint(
    "incident_rules", __name__, url_prefix="/projects/<path:reference>/incident_rules"
)
_ONE = f"/<int(max={LARGEST_ID}):rule_id>"


@incident_rules.get("")
@operation("incident_rules.index", query=IncidentRuleQuery, returns=IncidentRule)
def index(project: ProjectView, query: IncidentRuleQuery) -> Found[IncidentRule]:
    """List the rules of a project."""
    found = domain.list_rules(project.id, session=db.session())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[IncidentRule.of(rule) for rule in shown], total=len(found))


@incident_rules.get(_ONE)
@operation("incident_rules.show", returns=IncidentRule)
def show(project: ProjectView, rule_id: int) -> IncidentRule:
    """Show a rule."""
    return IncidentRule.of(domain.get_rule(project.id, rule_id, session=db.session()))


@incident_rules.post("")
@operation("incident_rules.create", body=IncidentRuleBody, returns=IncidentRule, status=201)
def create(project: ProjectView, body: IncidentRuleBody) -> IncidentRule:
    """Create a rule for new alerts."""
    made = domain.create_rule(project.id, body.values, session=db.session(), now=now())
    record_event(rule_event(EventKind.INCIDENT_RULE_CREATED, made, project.path))
    return IncidentRule.of(made)


@incident_rules.put(_ONE)
@operation("incident_rules.change", body=IncidentRuleChange, returns=IncidentRule)
def change(project: ProjectView, rule_id: int, body: IncidentRuleChange) -> IncidentRule:
    """Change a rule; incidents that it opened stay as they are."""
    session = db.session()
    values = body.values(domain.get_rule(project.id, rule_id, session=session))
    changed = domain.change_rule(project.id, rule_id, values, session=session, now=now())
    record_event(rule_event(EventKind.INCIDENT_RULE_CHANGED, changed, project.path))
    return IncidentRule.of(changed)


@incident_rules.delete(_ONE)
@operation("incident_rules.delete")
def delete(project: ProjectView, rule_id: int) -> None:
    """Delete a rule; incidents that it opened are kept."""
    gone = domain.delete_rule(project.id, rule_id, session=db.session())
    record_event(rule_event(EventKind.INCIDENT_RULE_REMOVED, gone, project.path))
