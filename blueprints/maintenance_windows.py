"""/<project>/-/maintenance_windows: times in which alerts page nobody."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.maintenance_windows import actions
from domain.maintenance_windows.types import MaintenanceWindow, WindowChange
from domain.projects.views import ProjectView
from forms.maintenance_windows import MaintenanceWindowForm, form_of
from web.access.marks import get_current_user, permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links

maintenance_windows = PageBlueprint(
    "maintenance_windows", __name__, url_prefix="/<names:project_path>/-/maintenance_windows"
)


@maintenance_windows.get("")
@permitted("maintenance_windows.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List maintenance windows with their next occurrences."""
    list_query(*CURSORS)
    page = page_links(actions.show_page(work(), project, asked_slice()))
    return render_template("maintenance_windows/index.html", project=project, page=page)


@maintenance_windows.route("/new", methods=["GET", "POST"])
@permitted("maintenance_windows.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Create a maintenance window."""
    form = MaintenanceWindowForm(time_zone=get_current_user().time_zone)
    if request.method == "POST":
        made = form.carry_out(lambda: actions.create_window(work(), project, form.window()))
        if made is not None:
            flash(f"Maintenance window “{made.name}” created.")
            return _to_list(project)
    return _form_page(project, form, None)


@maintenance_windows.route("/<int:window_id>/edit", methods=["GET", "POST"])
@permitted("maintenance_windows.edit")
def edit(project: ProjectView, window_id: int) -> ResponseReturnValue:
    """Change a maintenance window."""
    window = actions.show_window(work(), project, window_id)
    form = form_of(window)
    if request.method == "POST":
        changed = form.carry_out(
            lambda: actions.change_window(
                work(), project, window_id, WindowChange(**form.window().given)
            )
        )
        if changed is not None:
            flash(f"Maintenance window “{changed.name}” saved.")
            return _to_list(project)
    return _form_page(project, form, window)


def _form_page(
    project: ProjectView, form: MaintenanceWindowForm, window: MaintenanceWindow | None
) -> ResponseReturnValue:
    page = render_template(
        "maintenance_windows/edit.html",
        project=project,
        form=form,
        window=window,
    )
    return page, 422 if form.errors else 200


@maintenance_windows.post("/<int:window_id>/delete")
@permitted("maintenance_windows.delete")
def delete(project: ProjectView, window_id: int) -> ResponseReturnValue:
    """Delete a maintenance window."""
    window = actions.delete_window(work(), project, window_id)
    flash(f"Maintenance window “{window.name}” deleted.")
    return _to_list(project)


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("maintenance_windows.index", project_path=project.path))
