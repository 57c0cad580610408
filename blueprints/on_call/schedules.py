"""Pages of one on-call schedule: its calendar, its settings, and how it is created and deleted."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.errors import ConflictError
from domain.on_call import actions
from domain.on_call.schedules import all_schedules
from domain.on_call.types import NewSchedule, OnCallSchedule, ScheduleChange
from domain.projects.views import ProjectView
from forms.on_call import ScheduleForm
from web.access.marks import get_current_user, permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.on_call.schedule_page import asked_grid, schedule_page
from web.pages.list_query import list_query

on_call_schedules = PageBlueprint(
    "on_call_schedules", __name__, url_prefix="/<names:project_path>/-/on_call/schedules"
)
_FIRST_NAME = "Primary"
_ONE = "/<int:schedule_id>"


@on_call_schedules.route("/new", methods=["GET", "POST"])
@permitted("on_call_schedules.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a schedule; its rotations are added on its page."""
    is_first = not all_schedules(work(), project)
    form = ScheduleForm(
        name=_FIRST_NAME if is_first else None, time_zone=get_current_user().time_zone
    )
    if request.method == "GET":
        return _form_page(project, form)
    created = form.carry_out(
        lambda: actions.create_schedule(work(), project, form.read(NewSchedule))
    )
    if created is None:
        return _form_page(project, form)
    flash("Schedule created. Add a rotation next.")
    url = url_for("on_call_rotations.new", project_path=project.path, schedule_id=created.id)
    return redirect(url)


@on_call_schedules.get(_ONE)
@permitted("on_call_schedules.show")
def show(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Show who is on call now and next, the calendar, rotations, overrides and swaps."""
    schedule = actions.show_schedule(work(), project, schedule_id)
    given = list_query("view", "day")
    return schedule_page(project, schedule, asked_grid(given, schedule))


@on_call_schedules.route(f"{_ONE}/edit", methods=["GET", "POST"])
@permitted("on_call_schedules.change")
def edit(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Change name, description and time zone of a schedule."""
    before = actions.show_schedule(work(), project, schedule_id)
    form = ScheduleForm(obj=before)
    if request.method == "GET":
        return _form_page(project, form, before)
    changed = form.carry_out(
        lambda: actions.change_schedule(work(), project, schedule_id, form.read(ScheduleChange))
    )
    if changed is None:
        return _form_page(project, form, before)
    flash("Schedule saved.")
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )


@on_call_schedules.post(f"{_ONE}/delete")
@permitted("on_call_schedules.delete")
def delete(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Delete a schedule with its rotations, overrides and swaps."""
    try:
        deleted = actions.delete_schedule(work(), project, schedule_id)
    except ConflictError as error:
        flash(str(error), "error")
        return redirect(
            url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
        )
    flash(f"{deleted.name} was deleted.")
    return redirect(url_for("on_call.index", project_path=project.path))


def _form_page(
    project: ProjectView, form: ScheduleForm, schedule: OnCallSchedule | None = None
) -> ResponseReturnValue:
    page = render_template(
        "on_call/schedule_form.html", project=project, form=form, schedule=schedule
    )
    return page, 422 if form.errors else 200
