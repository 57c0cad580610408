"""Actions on the rules that open incidents."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.change_feed import Follower, add_follower
from domain.alerts.matching.conditions import parse_conditions
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.audit.events import EventKind
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.incidents.alert_links import stop_queuing_alert_changes_if_unneeded
from domain.incidents.listing import lock_incidents
from domain.incidents.responders import (
    find_named_responders,
    find_responder_targets,
    store_responders,
)
from domain.incidents.types import (
    MAX_INCIDENT_RULE_NAME_LENGTH,
    IncidentRule,
    IncidentRuleChange,
    IncidentRuleQuery,
    NewIncidentRule,
)
from domain.paging.escalations.policies import lock_policies_and_routes, resolve_targets
from domain.paging.escalations.policy_steps import AnyTarget, Target
from domain.projects.views import ProjectView
from models import IncidentRule as RuleRow

MAX_INCIDENT_RULES = 50


@read_action("incident_rules.index")
def list_rules(
    work: UnitOfWork, project: ProjectView, query: IncidentRuleQuery
) -> ListPage[IncidentRule]:
    """List the incident rules of a project in the order in which they are applied."""
    found = fetch_list_page(
        _build_rules_query(project), {"id": RuleRow.id}, query.requested_range, session=work.session
    )
    items = _build_resources(work, found.items)
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


@read_action("incident_rules.index")
def list_all_rules(work: UnitOfWork, project: ProjectView) -> Sequence[IncidentRule]:
    """Return all rules of a project in the order in which they are applied, oldest first."""
    return _build_resources(
        work, work.session.execute(_build_rules_query(project).order_by(RuleRow.id)).all()
    )


@read_action("incident_rules.show")
def show_rule(work: UnitOfWork, project: ProjectView, rule_id: int) -> IncidentRule:
    """Show an incident rule.

    Raise NotFoundError if the project has no such rule.
    """
    row = work.session.execute(_build_rules_query(project).where(RuleRow.id == rule_id)).first()
    if row is None:
        raise NotFoundError(f"Incident rule {rule_id} not found in this project.")
    return _build_resources(work, [row])[0]


@read_action("incident_rules.index")
def find_rule_name(work: UnitOfWork, project: ProjectView, rule_id: int) -> str | None:
    """Return the name of a rule that opened an incident, or None if the rule was deleted."""
    name = select(RuleRow.name).where(RuleRow.project_id == project.id, RuleRow.id == rule_id)
    return work.session.scalar(name)


@action("incident_rules.create")
def create_rule(work: UnitOfWork, project: ProjectView, new: NewIncidentRule) -> IncidentRule:
    """Create an incident rule.

    Raise InvalidError for an invalid field, or ConflictError if another rule has the same name.
    """
    called = _resolve_responders(work, project, new, targets=())
    lock_incidents(project.id, session=work.session)
    count = select(func.count()).where(RuleRow.project_id == project.id)
    if (work.session.scalar(count) or 0) >= MAX_INCIDENT_RULES:
        message = (
            f"A project can have at most {MAX_INCIDENT_RULES} incident rules. Delete a rule first."
        )
        raise InvalidError(message, field="name")
    row = RuleRow(project_id=project.id, created_at=work.now)
    _store_rule(work, project, row, new, called, EventKind.INCIDENT_RULE_CREATED)
    return show_rule(work, project, row.id)


@action("incident_rules.change")
def change_rule(
    work: UnitOfWork, project: ProjectView, rule_id: int, change: IncidentRuleChange
) -> IncidentRule:
    """Change an incident rule.

    Incidents that the rule has opened are not changed.

    Raise NotFoundError if the project has no such rule, InvalidError for an invalid field, or
    ConflictError if another rule has the same name.
    """
    called = None
    if "responders" in change.given_values:
        present = find_responder_targets([rule_id], session=work.session)
        called = _resolve_responders(work, project, change, targets=present.get(rule_id, ()))
    lock_incidents(project.id, session=work.session)
    before = {**dict(show_rule(work, project, rule_id)), "responders": ()}
    row = work.session.get_one(RuleRow, rule_id)
    wanted = NewIncidentRule.model_validate({**before, **change.given_values})
    _store_rule(work, project, row, wanted, called, EventKind.INCIDENT_RULE_CHANGED)
    return show_rule(work, project, rule_id)


@action("incident_rules.delete")
def delete_rule(work: UnitOfWork, project: ProjectView, rule_id: int) -> IncidentRule:
    """Delete an incident rule, but keep its incidents.

    Return the deleted rule. Raise NotFoundError if the project has no such rule.
    """
    lock_incidents(project.id, session=work.session)
    rule = show_rule(work, project, rule_id)
    _record_event(work, project, rule, EventKind.INCIDENT_RULE_REMOVED)
    work.session.delete(work.session.get_one(RuleRow, rule_id))
    work.session.flush()
    stop_queuing_alert_changes_if_unneeded(project.id, session=work.session)
    return rule


def _build_rules_query(project: ProjectView) -> Select[*tuple[Any, ...]]:
    return select(
        *RuleRow.__table__.columns,
        RuleRow.closes_when_resolved.label("close_when_resolved"),
        RuleRow.opens_when_silenced.label("open_when_silenced"),
        RuleRow.quiets_alerts.label("quiet_alerts"),
        RuleRow.is_active.label("active"),
    ).where(RuleRow.project_id == project.id)


def _build_resources(work: UnitOfWork, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[IncidentRule]:
    responders = find_named_responders([row.id for row in rows], session=work.session)
    return [
        IncidentRule.model_validate(
            {
                **row._asdict(),
                **parse_conditions(row.conditions).to_json(),
                "responders": responders.get(row.id, []),
            }
        )
        for row in rows
    ]


def _resolve_responders(
    work: UnitOfWork,
    project: ProjectView,
    new_incident_rule: NewIncidentRule,
    *,
    targets: Collection[Target],
) -> Sequence[Target]:
    """Return the responders of a rule.

    Current responders are always accepted, so that a rule can still be changed after a responder
    has left the project. Raise InvalidError if a new responder cannot be paged in this project.
    """
    wanted = new_incident_rule.responder_targets
    if wanted:
        # The lock prevents schedules from being deleted, and users from leaving, during the change.
        lock_policies_and_routes(project, session=work.session)
    new = [each for each in wanted if each not in targets]
    today = work.now.date()
    found = resolve_targets(new, project, field="responders", session=work.session, today=today)
    known: dict[AnyTarget, Target] = {**{each: each for each in targets}, **found}
    return tuple(dict.fromkeys(known[each] for each in wanted))


def _store_rule(
    work: UnitOfWork,
    project: ProjectView,
    row: RuleRow,
    new_incident_rule: NewIncidentRule,
    called: Sequence[Target] | None,
    kind: EventKind,
) -> None:
    """Store a new or changed rule, and record the change in the audit log.

    If `called` is None, the rule's responders are not changed. Raise InvalidError if the name is
    invalid, or ConflictError if the name is taken.
    """
    name = _validate_name(new_incident_rule.name)
    values = {
        "name": name,
        "conditions": new_incident_rule.build_conditions().to_json(),
        "closes_when_resolved": new_incident_rule.close_when_resolved,
        "opens_when_silenced": new_incident_rule.open_when_silenced,
        "quiets_alerts": new_incident_rule.quiet_alerts,
        "is_active": new_incident_rule.active,
    }
    present = find_responder_targets([row.id], session=work.session).get(row.id, ())
    calls_others = called is not None and called != present
    if not calls_others and all(getattr(row, field) == value for field, value in values.items()):
        return
    try:
        with work.session.begin_nested():
            work.session.add(row)
            row.updated_at = work.now
            for field, value in values.items():
                setattr(row, field, value)
    except IntegrityError as error:
        message = f'An incident rule named "{name}" already exists.'
        raise ConflictError(message, field="name") from error
    # Changes to alerts are followed as long as a rule can open incidents.
    add_follower(project.id, Follower.INCIDENTS, session=work.session)
    stop_queuing_alert_changes_if_unneeded(project.id, session=work.session)
    if calls_others:
        store_responders(row.id, called or (), session=work.session)
    _record_event(work, project, show_rule(work, project, row.id), kind)


def _validate_name(name: str) -> str:
    checked = replace_unstorable_characters(name).strip()
    if not checked or len(checked) > MAX_INCIDENT_RULE_NAME_LENGTH:
        message = f"The name must have 1 to {MAX_INCIDENT_RULE_NAME_LENGTH} characters."
        raise InvalidError(message, field="name")
    return checked


def _record_event(
    work: UnitOfWork, project: ProjectView, rule: IncidentRule, kind: EventKind
) -> None:
    shown = rule.model_dump(exclude={"name", "created_at", "updated_at"})
    details = {"project": project.path, **shown, "responders": rule.responder_descriptions}
    work.record_audit_event(kind, subject=rule.name, details=details)
