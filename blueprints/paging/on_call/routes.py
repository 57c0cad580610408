"""Pages for the alert routes of projects and groups, and the dry run."""

from collections.abc import Sequence

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.paging import one_of
from domain.paging.escalations import actions
from domain.paging.escalations.policies import default_among, used_policies
from domain.paging.escalations.routes import used_routes
from domain.paging.escalations.types import (
    AlertRoute,
    DryRunBody,
    EscalationPolicy,
    NewRoute,
    RouteChange,
)
from domain.projects.owners import lineage_of
from domain.projects.views import Holder
from forms.escalations import AlertRouteForm, route_form_for
from web.access.decorators import permitted
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint
from web.http.work import work
from web.pages.form_pages import form_page
from web.pages.list_query import list_query

alert_routes = NamespaceBlueprint("alert_routes", __name__, below="on_call/routes")
_DAYS = ("1", "7", "30", "90")


@alert_routes.get("")
@permitted("alert_routes.index")
def index(holder: Holder) -> ResponseReturnValue:
    """List routes in the order in which they are checked, and the default policy."""
    list_query()
    used, own = lineage_of(holder, session=db.session()), holder.path if holder.is_group else None
    policies = used_policies([used], session=db.session())
    found = used_routes(used, session=db.session())
    return render_template(
        "escalations/routes.html",
        holder=holder,
        routes=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        names={each.id: each.name for each in policies},
        default=default_among(policies),
    )


@alert_routes.get("/dry_run")
@permitted("alert_routes.dry_run")
def dry_run(holder: Holder) -> ResponseReturnValue:
    """Show who would have been paged for the alerts of the last days, and when."""
    days = one_of(list_query("days"), "days", _DAYS, "7")
    return render_template(
        "escalations/dry_run.html",
        holder=holder,
        found=actions.show_dry_run(work(), holder, DryRunBody(days=int(days))),
        days=days,
        choices=_DAYS,
    )


@alert_routes.route("/new", methods=["GET", "POST"])
@permitted("alert_routes.create")
def new(holder: Holder) -> ResponseReturnValue:
    """Create a route."""
    form = AlertRouteForm().offer(_policies(holder))
    if request.method == "POST":
        made = form.carry_out(lambda: actions.create_route(work(), holder, form.route(NewRoute)))
        if made is not None:
            flash(f"Route {made.name} created.")
            return _to_list(holder)
    return _page(holder, form)


@alert_routes.route("/<int:route_id>", methods=["GET", "POST"])
@permitted("alert_routes.change")
def edit(holder: Holder, route_id: int) -> ResponseReturnValue:
    """Change a route."""
    route = actions.show_route(work(), holder, route_id)
    form = route_form_for(route).offer(_policies(holder))
    if request.method == "POST":
        changed = form.carry_out(
            lambda: actions.change_route(work(), holder, route_id, form.route(RouteChange))
        )
        if changed is not None:
            flash(f"Route {changed.name} saved.")
            return _to_list(holder)
    return _page(holder, form, route)


@alert_routes.post("/<int:route_id>/move")
@permitted("alert_routes.change")
def move(holder: Holder, route_id: int) -> ResponseReturnValue:
    """Move a route one position up or down."""
    route = actions.show_route(work(), holder, route_id)
    step = -1 if request.form.get("to") == "up" else 1
    change = RouteChange.model_validate({"position": max(route.position + step, 1)})
    moved = actions.change_route(work(), holder, route_id, change)
    flash(f"Route {moved.name} is now number {moved.position}.")
    return _to_list(holder)


@alert_routes.post("/<int:route_id>/delete")
@permitted("alert_routes.delete")
def delete(holder: Holder, route_id: int) -> ResponseReturnValue:
    """Delete a route."""
    gone = actions.delete_route(work(), holder, route_id)
    flash(f"Route {gone.name} deleted.")
    return _to_list(holder)


def _policies(holder: Holder) -> Sequence[EscalationPolicy]:
    used = lineage_of(holder, session=db.session())
    return used_policies([used], session=db.session())


def _page(
    holder: Holder, form: AlertRouteForm, route: AlertRoute | None = None
) -> ResponseReturnValue:
    return form_page("escalations/route.html", form, holder=holder, route=route)


def _to_list(holder: Holder) -> ResponseReturnValue:
    return redirect(url_for("alert_routes.index", **holder.url_values))
