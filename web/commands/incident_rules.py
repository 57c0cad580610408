"""Commands about the rules of projects that open incidents."""

from collections.abc import Mapping
from typing import Any

import click
from flask.cli import AppGroup

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.audit.events import EventKind
from domain.incidents import rules as domain
from domain.incidents.events import rule_event
from domain.projects.access import check_takes_changes, follow_to_project
from domain.projects.views import ProjectView, Viewer
from web.api.schemas.incidents.incident_rules import IncidentRule
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)
_CONDITIONS = (
    click.option("--severity", "severities", multiple=True, help="critical, high …"),
    click.option(
        "--environment", "environments", multiple=True, help="* stands for any characters."
    ),
    click.option("--service", "services", multiple=True, help="* stands for any characters."),
    click.option("--matcher", "labels", multiple=True, help="""Such as 'team="db"'."""),
)

incident_rules = AppGroup("incident-rules", help="Rules: which alerts open incidents.")


def _with_conditions(command: Any) -> Any:
    for option in reversed(_CONDITIONS):
        command = option(command)
    return command


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


def _changeable(path: str) -> ProjectView:
    found = _project(path)
    check_takes_changes(found)
    return found


def _shown(rule: domain.RuleView) -> dict[str, Any]:
    return IncidentRule.of(rule).model_dump(mode="json")


def _conditions(given: Mapping[str, Any], present: Conditions) -> Conditions:
    names = ("severities", "environments", "services", "labels")
    return conditions_from(
        {**present.to_json(), **{name: list(given[name]) for name in names if given[name]}}
    )


@incident_rules.command("list")
@click.argument("project")
@one_transaction
def list_rules_command(*, project: str) -> dict[str, Any]:
    """List the rules of PROJECT. The first one that an alert meets opens an incident."""
    return {
        "rules": [
            _shown(rule) for rule in domain.list_rules(_project(project).id, session=db.session())
        ]
    }


@incident_rules.command("show")
@click.argument("project")
@click.argument("rule_id", metavar="ID", type=int)
@one_transaction
def show_rule_command(*, project: str, rule_id: int) -> dict[str, Any]:
    """Show the rule ID of PROJECT."""
    return _shown(domain.get_rule(_project(project).id, rule_id, session=db.session()))


@incident_rules.command("create")
@click.argument("project")
@click.option("--name", required=True, help="Name of the rule.")
@_with_conditions
@click.option(
    "--close-when-resolved", is_flag=True, help="Close incidents when their alerts are resolved."
)
@click.option(
    "--open-when-silenced",
    is_flag=True,
    help="Open incidents for silenced alerts too, and during maintenance windows.",
)
@click.option(
    "--on/--off", "active", default=None, help="Whether it opens incidents; by default on."
)
@one_transaction
def create_rule_command(*, project: str, **given: Any) -> dict[str, Any]:
    """Create a rule in PROJECT. An alert that meets all conditions opens an incident."""
    found = _changeable(project)
    wanted = domain.RuleValues(
        name=given["name"],
        conditions=_conditions(given, Conditions()),
        closes_when_resolved=given["close_when_resolved"],
        opens_when_silenced=given["open_when_silenced"],
        is_active=given["active"],
    )
    made = domain.create_rule(found.id, wanted, session=db.session(), now=now())
    record_event(rule_event(EventKind.INCIDENT_RULE_CREATED, made, found.path))
    return _shown(made)


@incident_rules.command("change")
@click.argument("project")
@click.argument("rule_id", metavar="ID", type=int)
@click.option("--name", help="New name.")
@_with_conditions
@click.option("--close-when-resolved/--close-by-hand", default=None)
@click.option("--open-when-silenced/--skip-silenced", default=None)
@click.option("--on/--off", "active", default=None, help="Whether it opens incidents.")
@one_transaction
def change_rule_command(*, project: str, rule_id: int, **given: Any) -> dict[str, Any]:
    """Change the rule ID of PROJECT. Omitted options keep their values."""
    found, session = _changeable(project), db.session()
    present = domain.get_rule(found.id, rule_id, session=session)
    closes, opens = given["close_when_resolved"], given["open_when_silenced"]
    wanted = domain.RuleValues(
        name=given["name"] or present.name,
        conditions=_conditions(given, present.conditions),
        closes_when_resolved=present.closes_when_resolved if closes is None else closes,
        opens_when_silenced=present.opens_when_silenced if opens is None else opens,
        is_active=given["active"],
    )
    changed = domain.change_rule(found.id, rule_id, wanted, session=session, now=now())
    record_event(rule_event(EventKind.INCIDENT_RULE_CHANGED, changed, found.path))
    return _shown(changed)


@incident_rules.command("delete")
@click.argument("project")
@click.argument("rule_id", metavar="ID", type=int)
@one_transaction
def delete_rule_command(*, project: str, rule_id: int) -> dict[str, Any]:
    """Delete the rule ID of PROJECT. Incidents that it opened are kept."""
    found = _changeable(project)
    gone = domain.delete_rule(found.id, rule_id, session=db.session())
    record_event(rule_event(EventKind.INCIDENT_RULE_REMOVED, gone, found.path))
    return {"id": gone.id, "name": gone.name, "deleted": True}
