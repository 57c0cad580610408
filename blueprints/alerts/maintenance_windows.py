"""/<project>/-/maintenance_windows: times in which alerts page nobody."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.audit.events import Actor, EventKind
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from domain.silences import windows as domain
from domain.silences.windows import WindowView
from domain.time_zones import zone_names
from forms.maintenance_window import MaintenanceWindowForm, form_of
from web.access.marks import get_current_user, project_member
from web.alerts.silences import record_window
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.services import now

maintenance_windows = PageBlueprint(
    "maintenance_windows", __name__, url_prefix="/<names:project_path>/-/maintenance_windows"
)


@maintenance_windows.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List maintenance windows with their next occurrences."""
    list_query(*CURSORS)
    found = domain.list_windows(project.id, asked_slice(), session=db.session())
    return render_template(
        "maintenance_windows/index.html", project=project, page=page_links(found)
    )


@maintenance_windows.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def create(project: ProjectView) -> ResponseReturnValue:
    """Create a maintenance window."""
    form = MaintenanceWindowForm(time_zone=get_current_user().time_zone)
    if request.method == "POST" and form.validate():
        me = Actor(id=get_current_user().id, name=get_current_user().username)
        try:
            made = domain.create_window(
                project.id, form.wanted, by=me, session=db.session(), now=now()
            )
        except InvalidError as error:
            form.object_to(error.field, str(error))
        else:
            record_window(EventKind.MAINTENANCE_WINDOW_CREATED, project.path, made)
            flash(f"Maintenance window “{made.name}” created.")
            return _to_list(project)
    return _form_page(project, form, None)


@maintenance_windows.route("/<int:window_id>/edit", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def edit(project: ProjectView, window_id: int) -> ResponseReturnValue:
    """Change a maintenance window."""
    window = domain.get_window(project.id, window_id, session=db.session())
    form = form_of(window)
    if request.method == "POST" and form.validate():
        try:
            changed = domain.change_window(
                project.id, window_id, form.wanted, session=db.session(), now=now()
            )
        except InvalidError as error:
            form.object_to(error.field, str(error))
        else:
            record_window(EventKind.MAINTENANCE_WINDOW_CHANGED, project.path, changed)
            flash(f"Maintenance window “{changed.name}” saved.")
            return _to_list(project)
    return _form_page(project, form, window)


def _form_page(
    project: ProjectView, form: MaintenanceWindowForm, window: WindowView | None
) -> ResponseReturnValue:
    page = render_template(
        "maintenance_windows/edit.html",
        project=project,
        form=form,
        window=window,
        zones=zone_names(),
    )
    return page, 422 if form.errors else 200


@maintenance_windows.post("/<int:window_id>/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, window_id: int) -> ResponseReturnValue:
    """Delete a maintenance window."""
    session = db.session()
    window = domain.get_window(project.id, window_id, session=session)
    domain.delete_window(project.id, window_id, session=session)
    record_window(EventKind.MAINTENANCE_WINDOW_DELETED, project.path, window)
    flash(f"Maintenance window “{window.name}” deleted.")
    return _to_list(project)


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("maintenance_windows.index", project_path=project.path))
