"""Pages that make and end overrides and swaps of an on-call schedule."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.errors import DomainError, ForbiddenError, InvalidError
from domain.on_call import notices, overrides, swaps
from domain.on_call.schedules import ScheduleView, get_schedule
from domain.projects.views import ProjectView
from forms.on_call_change import OverrideForm, SwapForm
from web.access.marks import project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.on_call.audit import record_override_change, record_swap_change
from web.on_call.notices import tell_users
from web.on_call.schedule_page import changer, names_to_choose, shifts_to_swap
from web.services import now

on_call_changes = PageBlueprint(
    "on_call_changes",
    __name__,
    url_prefix="/<names:project_path>/-/on_call/schedules/<int:schedule_id>",
)


@on_call_changes.route("/overrides/new", methods=["GET", "POST"])
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def new_override(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Put one user on call for a time, instead of everybody else."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    names = names_to_choose(project)
    form = OverrideForm(schedule=schedule, names=names, user=current_user.username, now=now())
    if form.validate_on_submit() and _override(project, schedule, form):
        flash("Override saved.")
        return _to_schedule(project, schedule_id)
    page = render_template(
        "on_call/override_form.html", project=project, schedule=schedule, form=form
    )
    return page, 422 if form.errors else 200


def _override(project: ProjectView, schedule: ScheduleView, form: OverrideForm) -> bool:
    try:
        made = overrides.create_override(
            project.namespace,
            schedule.id,
            form.override,
            by=changer(project),
            session=db.session(),
            now=now(),
        )
    except (InvalidError, ForbiddenError) as error:
        form.object_to(getattr(error, "field", ""), str(error))
        return False
    record_override_change("created", project, schedule, made)
    tell_users(notices.tell_of_override, made, project, schedule, by_id=current_user.id)
    return True


@on_call_changes.post("/overrides/<int:override_id>/delete")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def delete_override(
    project: ProjectView, schedule_id: int, override_id: int
) -> ResponseReturnValue:
    """Delete an override; one that has begun ends now."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    try:
        ended = overrides.end_override(
            schedule.id, override_id, by=changer(project), session=db.session(), now=now()
        )
    except DomainError as error:
        flash(str(error), "error")
        return _to_schedule(project, schedule_id)
    record_override_change("deleted", project, schedule, ended)
    tell_users(notices.tell_of_ended_override, ended, project, schedule, by_id=current_user.id)
    flash("Override removed.")
    return _to_schedule(project, schedule_id)


@on_call_changes.route("/swaps/new", methods=["GET", "POST"])
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def new_swap(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Swap two shifts of two users."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    own = None if project.can_maintain else current_user.username
    form = SwapForm(schedule=schedule, shifts=shifts_to_swap(schedule), own=own)
    if form.validate_on_submit() and _swap(project, schedule, form):
        flash("Shifts swapped.")
        return _to_schedule(project, schedule_id)
    page = render_template(
        "on_call/swap_form.html", project=project, schedule=schedule, form=form, own=own
    )
    return page, 422 if form.errors else 200


def _swap(project: ProjectView, schedule: ScheduleView, form: SwapForm) -> bool:
    fields = {"starts_at": "shift", "ends_at": "shift", "user": "shift"}
    try:
        made = swaps.create_swap(
            project.namespace,
            schedule.id,
            form.swap,
            by=changer(project),
            session=db.session(),
            now=now(),
        )
    except (InvalidError, ForbiddenError) as error:
        field = getattr(error, "field", "")
        form.object_to(fields.get(field, "other_shift" if field else ""), str(error))
        return False
    record_swap_change("created", project, schedule, made)
    tell_users(notices.tell_of_swap, made, project, schedule, by_id=current_user.id)
    return True


@on_call_changes.post("/swaps/<int:swap_id>/delete")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def delete_swap(project: ProjectView, schedule_id: int, swap_id: int) -> ResponseReturnValue:
    """Undo the remaining part of a swap."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    try:
        undone = swaps.undo_swap(
            schedule.id, swap_id, by=changer(project), session=db.session(), now=now()
        )
    except DomainError as error:
        flash(str(error), "error")
        return _to_schedule(project, schedule_id)
    record_swap_change("deleted", project, schedule, undone)
    tell_users(notices.tell_of_undone_swap, undone, project, schedule, by_id=current_user.id)
    flash("Swap undone.")
    return _to_schedule(project, schedule_id)


def _to_schedule(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )
