"""/<project>/-/on_call/routes: which alerts go to which policy, and a dry run of that."""

from collections.abc import Sequence

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.database.paging import one_of
from domain.escalations import actions
from domain.escalations.dry_run import MOST_ALERTS
from domain.escalations.policies import all_policies
from domain.escalations.routes import all_routes
from domain.escalations.types import (
    AlertRoute,
    DryRunBody,
    EscalationPolicy,
    NewRoute,
    RouteChange,
)
from domain.projects.views import ProjectView
from forms.escalations import AlertRouteForm, route_form_for
from web.access.marks import permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import list_query

alert_routes = PageBlueprint(
    "alert_routes", __name__, url_prefix="/<names:project_path>/-/on_call/routes"
)
_DAYS = ("1", "7", "30", "90")


@alert_routes.get("")
@permitted("alert_routes.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List routes in the order in which they are asked, and the default policy."""
    list_query()
    policies = _policies(project)
    return render_template(
        "escalations/routes.html",
        project=project,
        routes=all_routes(project.id, session=db.session()),
        names={each.id: each.name for each in policies},
        default=next((each for each in policies if each.default), None),
    )


@alert_routes.get("/dry_run")
@permitted("alert_routes.dry_run")
def dry_run(project: ProjectView) -> ResponseReturnValue:
    """Show who would have been paged for the alerts of the last days, and when."""
    days = one_of(list_query("days"), "days", _DAYS, "7")
    return render_template(
        "escalations/dry_run.html",
        project=project,
        found=actions.show_dry_run(work(), project, DryRunBody(days=int(days))),
        days=days,
        choices=_DAYS,
        most=MOST_ALERTS,
    )


@alert_routes.route("/new", methods=["GET", "POST"])
@permitted("alert_routes.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a route."""
    form = AlertRouteForm().offer(_policies(project))
    if request.method == "POST":
        made = form.carry_out(lambda: actions.create_route(work(), project, form.route(NewRoute)))
        if made is not None:
            flash(f"Route {made.name} created.")
            return _to_list(project)
    return _page(project, form)


@alert_routes.route("/<int:route_id>", methods=["GET", "POST"])
@permitted("alert_routes.change")
def edit(project: ProjectView, route_id: int) -> ResponseReturnValue:
    """Change a route."""
    route = actions.show_route(work(), project, route_id)
    form = route_form_for(route).offer(_policies(project))
    if request.method == "POST":
        changed = form.carry_out(
            lambda: actions.change_route(work(), project, route_id, form.route(RouteChange))
        )
        if changed is not None:
            flash(f"Route {changed.name} saved.")
            return _to_list(project)
    return _page(project, form, route)


@alert_routes.post("/<int:route_id>/move")
@permitted("alert_routes.change")
def move(project: ProjectView, route_id: int) -> ResponseReturnValue:
    """Move a route one place up or down."""
    route = actions.show_route(work(), project, route_id)
    step = -1 if request.form.get("to") == "up" else 1
    change = RouteChange.model_validate({"position": max(route.position + step, 1)})
    moved = actions.change_route(work(), project, route_id, change)
    flash(f"Route {moved.name} is number {moved.position} now.")
    return _to_list(project)


@alert_routes.post("/<int:route_id>/delete")
@permitted("alert_routes.delete")
def delete(project: ProjectView, route_id: int) -> ResponseReturnValue:
    """Delete a route."""
    gone = actions.delete_route(work(), project, route_id)
    flash(f"Route {gone.name} deleted.")
    return _to_list(project)


def _policies(project: ProjectView) -> Sequence[EscalationPolicy]:
    return all_policies(project.id, session=db.session())


def _page(
    project: ProjectView, form: AlertRouteForm, route: AlertRoute | None = None
) -> ResponseReturnValue:
    page = render_template("escalations/route.html", project=project, form=form, route=route)
    return page, 422 if form.errors else 200


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("alert_routes.index", project_path=project.path))
