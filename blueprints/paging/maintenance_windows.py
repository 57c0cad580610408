"""Pages for maintenance windows in projects and groups.

Alerts do not page anyone during a window.
"""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.paging.maintenance_windows import actions
from domain.paging.maintenance_windows.types import MaintenanceWindow, WindowChange
from domain.projects.views import ProjectOrGroup
from forms.maintenance_windows import MaintenanceWindowForm, build_window_form
from web.access.decorators import get_current_user, permission_required
from web.http.endpoints import NamespaceBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)

maintenance_windows = NamespaceBlueprint(
    "maintenance_windows", __name__, below="maintenance_windows"
)


@maintenance_windows.get("")
@permission_required("maintenance_windows.index")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """List maintenance windows with their next occurrences."""
    get_list_query(*CURSOR_PARAMETERS)
    return render_template(
        "maintenance_windows/index.html",
        holder=holder,
        page=build_page_links(
            actions.fetch_window_page(get_unit_of_work(), holder, get_requested_keyset_range())
        ),
        above=actions.list_inherited_windows(get_unit_of_work(), holder),
    )


@maintenance_windows.route("/new", methods=["GET", "POST"])
@permission_required("maintenance_windows.create")
def create(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Create a maintenance window."""
    form = MaintenanceWindowForm(time_zone=get_current_user().time_zone)
    made = form.run_if_valid(
        lambda: actions.create_window(get_unit_of_work(), holder, form.build_window())
    )
    if made is None:
        return _render_form(holder, form, None)
    flash(f"Maintenance window “{made.name}” created.")
    return _redirect_to_list(holder)


@maintenance_windows.route("/<int:window_id>/edit", methods=["GET", "POST"])
@permission_required("maintenance_windows.edit")
def edit(holder: ProjectOrGroup, window_id: int) -> ResponseReturnValue:
    """Change a maintenance window."""
    window = actions.show_window(get_unit_of_work(), holder, window_id)
    form = build_window_form(window)
    changed = form.run_if_valid(
        lambda: actions.change_window(
            get_unit_of_work(), holder, window_id, WindowChange(**form.build_window().given_values)
        )
    )
    if changed is None:
        return _render_form(holder, form, window)
    flash(f"Maintenance window “{changed.name}” saved.")
    return _redirect_to_list(holder)


def _render_form(
    holder: ProjectOrGroup, form: MaintenanceWindowForm, window: MaintenanceWindow | None
) -> ResponseReturnValue:
    return render_form_page("maintenance_windows/edit.html", form, holder=holder, window=window)


@maintenance_windows.post("/<int:window_id>/delete")
@permission_required("maintenance_windows.delete")
def delete(holder: ProjectOrGroup, window_id: int) -> ResponseReturnValue:
    """Delete a maintenance window."""
    window = actions.delete_window(get_unit_of_work(), holder, window_id)
    flash(f"Maintenance window “{window.name}” deleted.")
    return _redirect_to_list(holder)


def _redirect_to_list(holder: ProjectOrGroup) -> ResponseReturnValue:
    return redirect(url_for("maintenance_windows.index", **holder.url_values))
