"""/api/v4/projects/:id/alert_routes: which alerts go to which escalation policy."""

from flask import Blueprint

from domain.escalations import dry_run as dry_runs
from domain.escalations import routes as domain
from domain.escalations.routes import RouteDraft
from domain.projects.views import ProjectView
from web.alerts.escalations import change_route, create_route, delete_route
from web.api.operations import Found, operation
from web.api.schemas.alerts.alert_routes import (
    AlertRoute,
    AlertRouteBody,
    AlertRouteChange,
    AlertRouteDryRun,
    AlertRouteQuery,
    DryRunBody,
)
from web.extensions import db
from web.services import now, reading

alert_routes = Blueprint(
    "alert_routes", __name__, url_prefix="/projects/<path:reference>/alert_routes"
)


@alert_routes.get("")
@operation("alert_routes.index", query=AlertRouteQuery, returns=AlertRoute)
def index(project: ProjectView, query: AlertRouteQuery) -> Found[AlertRoute]:
    """List the alert routes, in the order in which they are applied."""
    found = domain.all_routes(project.id, session=db.session())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[AlertRoute.of(each) for each in shown], total=len(found))


@alert_routes.get("/<int:route_id>")
@operation("alert_routes.show", returns=AlertRoute)
def show(project: ProjectView, route_id: int) -> AlertRoute:
    """Show an alert route."""
    return AlertRoute.of(domain.get_route(project.id, route_id, session=db.session()))


@alert_routes.post("")
@operation("alert_routes.create", body=AlertRouteBody, returns=AlertRoute, status=201)
def create(project: ProjectView, body: AlertRouteBody) -> AlertRoute:
    """Create an alert route."""
    draft = RouteDraft(
        name=body.name,
        conditions=body.conditions(),
        policy_id=body.escalation_policy_id,
        position=body.position,
    )
    return AlertRoute.of(create_route(project, draft))


@alert_routes.put("/<int:route_id>")
@operation("alert_routes.change", body=AlertRouteChange, returns=AlertRoute)
def change(project: ProjectView, route_id: int, body: AlertRouteChange) -> AlertRoute:
    """Change an alert route; omitted fields are kept."""
    present = domain.get_route(project.id, route_id, session=db.session())
    given = body.model_fields_set
    draft = RouteDraft(
        name=present.name if body.name is None else body.name,
        conditions=body.conditions(present.conditions),
        policy_id=(
            body.escalation_policy_id if "escalation_policy_id" in given else present.policy_id
        ),
        position=body.position,
    )
    return AlertRoute.of(change_route(project, route_id, draft))


@alert_routes.delete("/<int:route_id>")
@operation("alert_routes.delete")
def delete(project: ProjectView, route_id: int) -> None:
    """Delete an alert route."""
    delete_route(project, route_id)


@alert_routes.post("/dry_run")
@operation("alert_routes.dry_run", body=DryRunBody, returns=AlertRouteDryRun).but(writes=False)
def dry_run(project: ProjectView, body: DryRunBody) -> AlertRouteDryRun:
    """Show who would have been paged for past alerts, and when."""
    asked = dry_runs.period(body.since, body.until, now=now())
    return AlertRouteDryRun.of(
        dry_runs.dry_run(project.namespace, asked, session=db.session(), reading=reading())
    )
