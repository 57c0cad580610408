"""/<project>/-/on_call/routes: which alerts go to which policy, and a dry run of that."""

from datetime import timedelta

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.database.list_queries import one_of
from domain.errors import InvalidError
from domain.escalations import dry_run as dry_runs
from domain.escalations import routes as domain
from domain.escalations.policies import PolicyView, all_policies
from domain.escalations.routes import RouteView
from domain.projects.views import ProjectView
from forms.alert_route import AlertRouteForm, form_for
from web.access.marks import project_member
from web.alerts.escalations import change_route, create_route, delete_route, move_route
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
from web.services import now, reading

alert_routes = PageBlueprint(
    "alert_routes", __name__, url_prefix="/<names:project_path>/-/on_call/routes"
)
_DAYS = ("1", "7", "30", "90")


@alert_routes.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List routes in the order in which they are asked, and the default policy."""
    list_query()
    found = domain.all_routes(project.id, session=db.session())
    policies = all_policies(project.id, session=db.session())
    return render_template(
        "escalations/routes.html",
        project=project,
        routes=found,
        has_policies=bool(policies),
        default=next((each for each in policies if each.is_default), None),
    )


@alert_routes.get("/dry_run")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def dry_run(project: ProjectView) -> ResponseReturnValue:
    """Show who would have been paged for the alerts of the last days, and when."""
    days = one_of(list_query("days"), "days", _DAYS, "7")
    moment = now()
    asked = dry_runs.period(moment - timedelta(days=int(days)), moment, now=moment)
    found = dry_runs.dry_run(project.namespace, asked, session=db.session(), reading=reading())
    return render_template(
        "escalations/dry_run.html",
        project=project,
        found=found,
        days=days,
        choices=_DAYS,
        most=dry_runs.MOST_ALERTS,
    )


@alert_routes.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a route."""
    form = AlertRouteForm().offer(_policies(project))
    if not form.validate_on_submit():
        return _page(project, form)
    try:
        made = create_route(project, form.draft)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _page(project, form)
    flash(f"Route {made.name} created.")
    return _to_list(project)


@alert_routes.route("/<int:route_id>", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def edit(project: ProjectView, route_id: int) -> ResponseReturnValue:
    """Change a route."""
    route = domain.get_route(project.id, route_id, session=db.session())
    form = form_for(route).offer(_policies(project))
    if not form.validate_on_submit():
        return _page(project, form, route)
    try:
        changed = change_route(project, route_id, form.draft)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _page(project, form, route)
    flash(f"Route {changed.name} saved.")
    return _to_list(project)


@alert_routes.post("/<int:route_id>/move")
@project_member(at_least=Role.MAINTAINER)
def move(project: ProjectView, route_id: int) -> ResponseReturnValue:
    """Move a route one place up or down."""
    route = domain.get_route(project.id, route_id, session=db.session())
    step = -1 if request.form.get("to") == "up" else 1
    moved = move_route(project, route_id, max(route.position + step, 1))
    flash(f"Route {moved.name} is number {moved.position} now.")
    return _to_list(project)


@alert_routes.post("/<int:route_id>/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, route_id: int) -> ResponseReturnValue:
    """Delete a route."""
    gone = delete_route(project, route_id)
    flash(f"Route {gone.name} deleted.")
    return _to_list(project)


def _policies(project: ProjectView) -> list[PolicyView]:
    return list(all_policies(project.id, session=db.session()))


def _page(
    project: ProjectView, form: AlertRouteForm, route: RouteView | None = None
) -> ResponseReturnValue:
    page = render_template("escalations/route.html", project=project, form=form, route=route)
    return page, 422 if form.errors else 200


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("alert_routes.index", project_path=project.path))
