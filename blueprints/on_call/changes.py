"""Pages that make and end overrides and swaps of an on-call schedule."""

from collections.abc import Callable
from typing import Any

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.errors import DomainError, ForbiddenError
from domain.on_call.actions import show_schedule
from domain.on_call.change_actions import create_override, create_swap, end_override, undo_swap
from domain.projects.views import ProjectView
from forms.base import Form
from forms.on_call import OverrideForm, SwapForm
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.on_call.schedule_page import names_to_choose, shifts_to_swap
from web.services import now

on_call_changes = PageBlueprint(
    "on_call_changes",
    __name__,
    url_prefix="/<names:project_path>/-/on_call/schedules/<int:schedule_id>",
)


@on_call_changes.route("/overrides/new", methods=["GET", "POST"])
@permitted("on_call_overrides.create")
def new_override(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Put one user on call for a time, instead of everybody else."""
    schedule = show_schedule(work(), project, schedule_id)
    names = names_to_choose(project)
    form = OverrideForm(schedule=schedule, names=names, user=current_user.username, now=now())
    if _is_done(form, lambda: create_override(work(), project, schedule_id, form.override)):
        flash("Override saved.")
        return _to_schedule(project, schedule_id)
    page = render_template(
        "on_call/override_form.html", project=project, schedule=schedule, form=form
    )
    return page, 422 if form.errors else 200


@on_call_changes.post("/overrides/<int:override_id>/delete")
@permitted("on_call_overrides.delete")
def delete_override(
    project: ProjectView, schedule_id: int, override_id: int
) -> ResponseReturnValue:
    """Delete an override; one that has begun ends now."""
    try:
        end_override(work(), project, schedule_id, override_id)
    except DomainError as error:
        flash(str(error), "error")
    else:
        flash("Override removed.")
    return _to_schedule(project, schedule_id)


@on_call_changes.route("/swaps/new", methods=["GET", "POST"])
@permitted("on_call_swaps.create")
def new_swap(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Swap two shifts of two users."""
    schedule = show_schedule(work(), project, schedule_id)
    own = None if project.can_maintain else current_user.username
    form = SwapForm(schedule=schedule, shifts=shifts_to_swap(schedule), own=own)
    if _is_done(form, lambda: create_swap(work(), project, schedule_id, form.swap)):
        flash("Shifts swapped.")
        return _to_schedule(project, schedule_id)
    page = render_template(
        "on_call/swap_form.html", project=project, schedule=schedule, form=form, own=own
    )
    return page, 422 if form.errors else 200


@on_call_changes.post("/swaps/<int:swap_id>/delete")
@permitted("on_call_swaps.delete")
def delete_swap(project: ProjectView, schedule_id: int, swap_id: int) -> ResponseReturnValue:
    """Undo the remaining part of a swap."""
    try:
        undo_swap(work(), project, schedule_id, swap_id)
    except DomainError as error:
        flash(str(error), "error")
    else:
        flash("Swap undone.")
    return _to_schedule(project, schedule_id)


def _is_done(form: Form, act: Callable[[], Any]) -> bool:
    """Carry out what was posted; the page also shows why somebody may not change these shifts."""
    try:
        return form.is_submitted() and form.carry_out(act) is not None
    except ForbiddenError as error:
        form.object_to("", str(error))
        return False


def _to_schedule(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )
