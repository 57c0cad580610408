"""Pages for the maintenance windows of projects and groups, during which alerts do not page."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.paging.maintenance_windows import actions
from domain.paging.maintenance_windows.types import MaintenanceWindow, WindowChange
from domain.projects.views import Holder
from forms.maintenance_windows import MaintenanceWindowForm, form_of
from web.access.decorators import get_current_user, permitted
from web.http.endpoints import NamespaceBlueprint
from web.http.work import work
from web.pages.form_pages import form_page
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links

maintenance_windows = NamespaceBlueprint(
    "maintenance_windows", __name__, below="maintenance_windows"
)


@maintenance_windows.get("")
@permitted("maintenance_windows.index")
def index(holder: Holder) -> ResponseReturnValue:
    """List maintenance windows with their next occurrences."""
    list_query(*CURSORS)
    return render_template(
        "maintenance_windows/index.html",
        holder=holder,
        page=page_links(actions.show_page(work(), holder, asked_slice())),
        above=actions.show_above(work(), holder),
    )


@maintenance_windows.route("/new", methods=["GET", "POST"])
@permitted("maintenance_windows.create")
def create(holder: Holder) -> ResponseReturnValue:
    """Create a maintenance window."""
    form = MaintenanceWindowForm(time_zone=get_current_user().time_zone)
    made = form.carry_out(lambda: actions.create_window(work(), holder, form.window()))
    if made is None:
        return _form_page(holder, form, None)
    flash(f"Maintenance window “{made.name}” created.")
    return _to_list(holder)


@maintenance_windows.route("/<int:window_id>/edit", methods=["GET", "POST"])
@permitted("maintenance_windows.edit")
def edit(holder: Holder, window_id: int) -> ResponseReturnValue:
    """Change a maintenance window."""
    window = actions.show_window(work(), holder, window_id)
    form = form_of(window)
    changed = form.carry_out(
        lambda: actions.change_window(
            work(), holder, window_id, WindowChange(**form.window().given)
        )
    )
    if changed is None:
        return _form_page(holder, form, window)
    flash(f"Maintenance window “{changed.name}” saved.")
    return _to_list(holder)


def _form_page(
    holder: Holder, form: MaintenanceWindowForm, window: MaintenanceWindow | None
) -> ResponseReturnValue:
    return form_page("maintenance_windows/edit.html", form, holder=holder, window=window)


@maintenance_windows.post("/<int:window_id>/delete")
@permitted("maintenance_windows.delete")
def delete(holder: Holder, window_id: int) -> ResponseReturnValue:
    """Delete a maintenance window."""
    window = actions.delete_window(work(), holder, window_id)
    flash(f"Maintenance window “{window.name}” deleted.")
    return _to_list(holder)


def _to_list(holder: Holder) -> ResponseReturnValue:
    return redirect(url_for("maintenance_windows.index", **holder.url_values))
