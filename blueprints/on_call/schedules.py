"""Pages of one on-call schedule: its calendar, its settings, and how it is created and deleted."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.errors import ConflictError, InvalidError
from domain.on_call import schedules as domain
from domain.on_call.schedules import ScheduleView
from domain.projects.views import ProjectView
from forms.on_call import ScheduleForm
from web.access.marks import get_current_user, project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.on_call.audit import record_schedule_change
from web.on_call.deletion import delete_schedule
from web.on_call.schedule_changes import follow_change
from web.on_call.schedule_page import asked_grid, schedule_page
from web.pages.list_query import list_query
from web.services import now

on_call_schedules = PageBlueprint(
    "on_call_schedules", __name__, url_prefix="/<names:project_path>/-/on_call/schedules"
)
_FIRST_NAME = "Primary"
_ONE = "/<int:schedule_id>"


@on_call_schedules.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a schedule; its rotations are added on its page."""
    is_first = not domain.all_schedules(project.id, session=db.session())
    form = ScheduleForm(
        name=_FIRST_NAME if is_first else None, time_zone=get_current_user().time_zone
    )
    if not form.validate_on_submit():
        return _form_page(project, form)
    try:
        created = domain.create_schedule(
            project.namespace, form.schedule, session=db.session(), now=now()
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page(project, form)
    record_schedule_change("created", project, created)
    flash("Schedule created. Add a rotation next.")
    url = url_for("on_call_rotations.new", project_path=project.path, schedule_id=created.id)
    return redirect(url)


@on_call_schedules.get(_ONE)
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def show(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Show who is on call now and next, the calendar, rotations, overrides and swaps."""
    schedule = domain.get_schedule(project.id, schedule_id, session=db.session())
    given = list_query("view", "day")
    return schedule_page(project, schedule, asked_grid(given, schedule))


@on_call_schedules.route(f"{_ONE}/edit", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def edit(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Change name, description and time zone of a schedule."""
    before = domain.get_schedule(project.id, schedule_id, session=db.session())
    form = ScheduleForm(obj=before)
    if not form.validate_on_submit():
        return _form_page(project, form, before)
    try:
        after = domain.change_schedule(
            project.namespace, schedule_id, form.edit, session=db.session(), now=now()
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page(project, form, before)
    follow_change(project, before, after, by_id=get_current_user().id)
    flash("Schedule saved.")
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )


@on_call_schedules.post(f"{_ONE}/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Delete a schedule with its rotations, overrides and swaps."""
    try:
        deleted = delete_schedule(project, schedule_id)
    except ConflictError as error:
        flash(str(error), "error")
        return redirect(
            url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
        )
    flash(f"{deleted.name} was deleted.")
    return redirect(url_for("on_call.index", project_path=project.path))


def _form_page(
    project: ProjectView, form: ScheduleForm, schedule: ScheduleView | None = None
) -> ResponseReturnValue:
    page = render_template(
        "on_call/schedule_form.html", project=project, form=form, schedule=schedule
    )
    return page, 422 if form.errors else 200
