"""Commands about escalation policies and the routes of alerts to them."""

from datetime import timedelta
from typing import Any

import click
from flask.cli import AppGroup

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.escalations import dry_run as dry_runs
from domain.escalations import policies as policy_store
from domain.escalations import routes as route_store
from domain.escalations.policies import PolicyEdit
from domain.escalations.routes import RouteDraft
from domain.escalations.steps import parse_step
from domain.projects.access import follow_to_project
from domain.projects.views import ProjectView, Viewer
from web.alerts.escalations import (
    WrittenPlan,
    change_policy,
    change_route,
    create_policy,
    create_route,
    delete_policy,
    delete_route,
    read_plan,
)
from web.api.schemas.alerts.alert_routes import AlertRoute, AlertRouteDryRun
from web.api.schemas.on_call.escalation_policies import EscalationPolicy
from web.commands.transaction import one_transaction
from web.extensions import db
from web.services import now, reading

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)

escalations = AppGroup(
    "escalations", help="Escalation policies: who is paged for alerts, and when."
)
routes = AppGroup("alert-routes", help="Which alerts go to which escalation policy.")


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


@escalations.command("create")
@click.argument("project")
@click.option("--name", required=True, help="Name of the policy.")
@click.option(
    "--step",
    "steps",
    multiple=True,
    required=True,
    help='Delay from the start, and targets: "0s user:alice", "5m schedule:primary channel:ops".',
)
@click.option("--repeats", type=int, default=0, help="How often the steps are repeated.")
@click.option(
    "--repeat-pause", default="5m", show_default=True, help="Pause before the steps are repeated."
)
@click.option("--default", "is_default", is_flag=True, help="For alerts that match no route.")
@one_transaction
def create_policy_command(
    *,
    project: str,
    name: str,
    steps: tuple[str, ...],
    repeats: int,
    repeat_pause: str,
    is_default: bool,
) -> dict[str, Any]:
    """Create an escalation policy in PROJECT."""
    written = WrittenPlan(
        steps=[parse_step(each) for each in steps], repeats=repeats, pause=repeat_pause
    )
    made = create_policy(_project(project), name, written, is_default=is_default)
    return EscalationPolicy.of(made).model_dump(mode="json")


@escalations.command("list")
@click.argument("project")
@one_transaction
def list_policies_command(*, project: str) -> dict[str, Any]:
    """List the escalation policies of PROJECT."""
    found = policy_store.all_policies(_project(project).id, session=db.session())
    return {"policies": [EscalationPolicy.of(each).model_dump(mode="json") for each in found]}


@escalations.command("show")
@click.argument("project")
@click.argument("policy", metavar="NAME-OR-ID")
@one_transaction
def show_policy_command(*, project: str, policy: str) -> dict[str, Any]:
    """Show an escalation policy of PROJECT."""
    found = policy_store.find_policy(_project(project).id, policy, session=db.session())
    return EscalationPolicy.of(found).model_dump(mode="json")


@escalations.command("change")
@click.argument("project")
@click.argument("policy", metavar="NAME-OR-ID")
@click.option("--name", help="New name.")
@click.option(
    "--step", "steps", multiple=True, help="Replaces all steps; same format as for `create`."
)
@click.option("--repeats", type=int, help="How often the steps are repeated.")
@click.option("--repeat-pause", help="Pause before the steps are repeated.")
@click.option(
    "--default/--no-default", "is_default", default=None, help="For alerts that match no route."
)
@one_transaction
def change_policy_command(
    *, project: str, policy: str, name: str | None, is_default: bool | None, **given: Any
) -> dict[str, Any]:
    """Change an escalation policy of PROJECT. Omitted options keep their values."""
    place = _project(project)
    present = policy_store.find_policy(place.id, policy, session=db.session())
    written = WrittenPlan(
        steps=[parse_step(each) for each in given["steps"]] or None,
        repeats=given["repeats"],
        pause=given["repeat_pause"],
    )
    plan = read_plan(place, written, present.plan)
    edit = PolicyEdit(name=name, plan=plan, is_default=is_default)
    return EscalationPolicy.of(change_policy(place, present.id, edit)).model_dump(mode="json")


@escalations.command("delete")
@click.argument("project")
@click.argument("policy", metavar="NAME-OR-ID")
@one_transaction
def delete_policy_command(*, project: str, policy: str) -> dict[str, Any]:
    """Delete an escalation policy of PROJECT that no route uses; its escalations end."""
    place = _project(project)
    found = policy_store.find_policy(place.id, policy, session=db.session())
    gone = delete_policy(place, found.id)
    return {"id": gone.id, "name": gone.name, "deleted": True}


@routes.command("create")
@click.argument("project")
@click.option("--name", required=True, help="Name of the route.")
@click.option("--policy", help="Name or id of the escalation policy.")
@click.option("--nobody", is_flag=True, help="Matching alerts page nobody.")
@click.option("--severity", "severities", multiple=True, help="critical, high …; by default any.")
@click.option("--environment", "environments", multiple=True, help="* stands for any characters.")
@click.option("--service", "services", multiple=True, help="* stands for any characters.")
@click.option(
    "--matcher", "labels", multiple=True, help="""Condition on a label, such as 'team="db"'."""
)
@click.option("--position", type=click.IntRange(1, 1_000), help="From 1; by default last.")
@one_transaction
def create_route_command(
    *,
    project: str,
    name: str,
    policy: str | None,
    nobody: bool,
    position: int | None,
    **conditions: tuple[str, ...],
) -> dict[str, Any]:
    """Create a route in PROJECT. The first route that fits an alert decides."""
    if (policy is None) is not nobody:
        message = "Use either --policy or --nobody."
        raise click.UsageError(message)
    place = _project(project)
    draft = RouteDraft(
        name=name,
        conditions=_conditions(conditions),
        policy_id=_policy_id(place, policy),
        position=position,
    )
    return AlertRoute.of(create_route(place, draft)).model_dump(mode="json")


def _conditions(given: dict[str, tuple[str, ...]]) -> Conditions:
    return conditions_from({name: list(values) for name, values in given.items()})


def _policy_id(project: ProjectView, policy: str | None) -> int | None:
    if policy is None:
        return None
    return policy_store.find_policy(project.id, policy, session=db.session()).id


@routes.command("list")
@click.argument("project")
@one_transaction
def list_routes_command(*, project: str) -> dict[str, Any]:
    """List the routes of PROJECT, in the order in which they are applied."""
    found = route_store.all_routes(_project(project).id, session=db.session())
    return {"routes": [AlertRoute.of(each).model_dump(mode="json") for each in found]}


@routes.command("show")
@click.argument("project")
@click.argument("route", type=int, metavar="ID")
@one_transaction
def show_route_command(*, project: str, route: int) -> dict[str, Any]:
    """Show the route ID of PROJECT."""
    found = route_store.get_route(_project(project).id, route, session=db.session())
    return AlertRoute.of(found).model_dump(mode="json")


@routes.command("change")
@click.argument("project")
@click.argument("route", type=int, metavar="ID")
@click.option("--name", help="New name.")
@click.option("--policy", help="Name or id of another escalation policy.")
@click.option("--nobody", is_flag=True, help="Matching alerts page nobody.")
@click.option("--severity", "severities", multiple=True, help="Replaces all conditions.")
@click.option("--environment", "environments", multiple=True, help="Replaces all conditions.")
@click.option("--service", "services", multiple=True, help="Replaces all conditions.")
@click.option("--matcher", "labels", multiple=True, help="Replaces all conditions.")
@click.option("--position", type=click.IntRange(1, 1_000), help="From 1.")
@one_transaction
def change_route_command(
    *, project: str, route: int, policy: str | None, nobody: bool, **given: Any
) -> dict[str, Any]:
    """Change the route ID of PROJECT. Omitted options keep their values."""
    if policy is not None and nobody:
        message = "Use either --policy or --nobody."
        raise click.UsageError(message)
    place = _project(project)
    present = route_store.get_route(place.id, route, session=db.session())
    name, position = given.pop("name"), given.pop("position")
    keeps_policy = policy is None and not nobody
    draft = RouteDraft(
        name=name or present.name,
        conditions=_conditions(given) if any(given.values()) else present.conditions,
        policy_id=present.policy_id if keeps_policy else _policy_id(place, policy),
        position=position,
    )
    return AlertRoute.of(change_route(place, route, draft)).model_dump(mode="json")


@routes.command("delete")
@click.argument("project")
@click.argument("route", type=int, metavar="ID")
@one_transaction
def delete_route_command(*, project: str, route: int) -> dict[str, Any]:
    """Delete the route ID of PROJECT."""
    gone = delete_route(_project(project), route)
    return {"id": gone.id, "name": gone.name, "deleted": True}


@routes.command("dry-run")
@click.argument("project")
@click.option(
    "--days", type=click.IntRange(1, 92), default=7, show_default=True, help="How far to look back."
)
@one_transaction
def dry_run_command(*, project: str, days: int) -> dict[str, Any]:
    """Show who would have been paged for past alerts of PROJECT, and when."""
    moment = now()
    asked = dry_runs.period(moment - timedelta(days=days), moment, now=moment)
    found = dry_runs.dry_run(
        _project(project).namespace, asked, session=db.session(), reading=reading()
    )
    return AlertRouteDryRun.of(found).model_dump(mode="json")
