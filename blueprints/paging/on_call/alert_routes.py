"""Pages for the alert routes of projects and groups, and the dry run."""

from collections.abc import Sequence

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.pagination import get_choice
from domain.paging.escalations import actions
from domain.paging.escalations.policies import find_default_policy, list_applicable_policies
from domain.paging.escalations.routes import list_applicable_routes
from domain.paging.escalations.types import (
    AlertRoute,
    DryRunBody,
    EscalationPolicy,
    NewRoute,
    RouteChange,
)
from domain.projects.row_ownership import find_group_chain
from domain.projects.views import ProjectOrGroup
from forms.escalations import AlertRouteForm, build_route_form
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query

alert_routes = NamespaceBlueprint("alert_routes", __name__, below="on_call/routes")
_DRY_RUN_DAYS = ("1", "7", "30", "90")


@alert_routes.get("")
@permission_required("alert_routes.index")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """List routes in the order in which they are checked, and the default policy."""
    get_list_query()
    used, own = (
        find_group_chain(holder, session=db.session()),
        holder.path if holder.is_group else None,
    )
    policies = list_applicable_policies([used], session=db.session())
    found = list_applicable_routes(used, session=db.session())
    return render_template(
        "escalations/routes.html",
        holder=holder,
        routes=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        names={each.id: each.name for each in policies},
        default=find_default_policy(policies),
    )


@alert_routes.get("/dry_run")
@permission_required("alert_routes.dry_run")
def dry_run(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Show which users would have been paged about recent alerts, and when."""
    days = get_choice(get_list_query("days"), "days", _DRY_RUN_DAYS, "7")
    return render_template(
        "escalations/dry_run.html",
        holder=holder,
        found=actions.show_dry_run(get_unit_of_work(), holder, DryRunBody(days=int(days))),
        days=days,
        choices=_DRY_RUN_DAYS,
    )


@alert_routes.route("/new", methods=["GET", "POST"])
@permission_required("alert_routes.create")
def new(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Create an alert route."""
    form = AlertRouteForm().set_policy_choices(_list_policies(holder))
    if request.method == "POST":
        made = form.run_if_valid(
            lambda: actions.create_route(get_unit_of_work(), holder, form.build_route(NewRoute))
        )
        if made is not None:
            flash(f"Route {made.name} created.")
            return _redirect_to_list(holder)
    return _render_form(holder, form)


@alert_routes.route("/<int:route_id>", methods=["GET", "POST"])
@permission_required("alert_routes.change")
def edit(holder: ProjectOrGroup, route_id: int) -> ResponseReturnValue:
    """Change an alert route."""
    route = actions.show_route(get_unit_of_work(), holder, route_id)
    form = build_route_form(route).set_policy_choices(_list_policies(holder))
    if request.method == "POST":
        changed = form.run_if_valid(
            lambda: actions.change_route(
                get_unit_of_work(), holder, route_id, form.build_route(RouteChange)
            )
        )
        if changed is not None:
            flash(f"Route {changed.name} saved.")
            return _redirect_to_list(holder)
    return _render_form(holder, form, route)


@alert_routes.post("/<int:route_id>/move")
@permission_required("alert_routes.change")
def move(holder: ProjectOrGroup, route_id: int) -> ResponseReturnValue:
    """Move an alert route one position up or down."""
    route = actions.show_route(get_unit_of_work(), holder, route_id)
    step = -1 if request.form.get("to") == "up" else 1
    change = RouteChange.model_validate({"position": max(route.position + step, 1)})
    moved = actions.change_route(get_unit_of_work(), holder, route_id, change)
    flash(f"Route {moved.name} is now number {moved.position}.")
    return _redirect_to_list(holder)


@alert_routes.post("/<int:route_id>/delete")
@permission_required("alert_routes.delete")
def delete(holder: ProjectOrGroup, route_id: int) -> ResponseReturnValue:
    """Delete an alert route."""
    gone = actions.delete_route(get_unit_of_work(), holder, route_id)
    flash(f"Route {gone.name} deleted.")
    return _redirect_to_list(holder)


def _list_policies(holder: ProjectOrGroup) -> Sequence[EscalationPolicy]:
    used = find_group_chain(holder, session=db.session())
    return list_applicable_policies([used], session=db.session())


def _render_form(
    holder: ProjectOrGroup, form: AlertRouteForm, route: AlertRoute | None = None
) -> ResponseReturnValue:
    return render_form_page("escalations/route.html", form, holder=holder, route=route)


def _redirect_to_list(holder: ProjectOrGroup) -> ResponseReturnValue:
    return redirect(url_for("alert_routes.index", **holder.url_values))
