"""Pages that add, change and end the rotations of an on-call schedule."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.on_call.schedule_page import LaneChart, list_eligible_names
from domain.core.errors import InvalidError, NotFoundError
from domain.paging.on_call.actions import (
    preview_rotation,
    preview_turns,
    put_rotation,
    show_schedule,
)
from domain.paging.on_call.types import OnCallRotation, OnCallSchedule
from domain.projects.views import ProjectOrGroup
from forms.on_call import MoveConfirmationForm, RotationForm
from web.access.decorators import get_current_user, permission_required
from web.http.endpoints import NamespaceBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page

on_call_rotations = NamespaceBlueprint(
    "on_call_rotations", __name__, below="on_call/schedules/<int:schedule_id>/rotations"
)


@on_call_rotations.route("/new", methods=["GET", "POST"])
@permission_required("on_call_rotations.put")
def new(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Add a rotation above the others."""
    schedule = show_schedule(get_unit_of_work(), holder, schedule_id)
    form = _add_requested_rows(RotationForm(users=_propose_first_user(holder, schedule)))
    if _save_rotation(holder, schedule_id, form, None):
        flash("Rotation added.")
        return _redirect_to_schedule(holder, schedule_id)
    return _render_form(holder, schedule, form, None)


@on_call_rotations.route("/<int:rotation_id>/edit", methods=["GET", "POST"])
@permission_required("on_call_rotations.put")
def edit(holder: ProjectOrGroup, schedule_id: int, rotation_id: int) -> ResponseReturnValue:
    """Change a rotation without changing its past shifts."""
    schedule = show_schedule(get_unit_of_work(), holder, schedule_id)
    rotation = _get_rotation(schedule, rotation_id)
    form = _add_requested_rows(RotationForm.from_rotation(rotation))
    if _save_rotation(holder, schedule_id, form, rotation_id):
        flash("Rotation saved. It applies from now on. Past shifts do not change.")
        return _redirect_to_schedule(holder, schedule_id)
    return _render_form(holder, schedule, form, rotation)


@on_call_rotations.post("/<int:rotation_id>/delete")
@permission_required("on_call_rotations.put")
def delete(holder: ProjectOrGroup, schedule_id: int, rotation_id: int) -> ResponseReturnValue:
    """End a rotation without changing its past shifts."""
    form = MoveConfirmationForm()
    with show_errors_on_next_page(InvalidError):
        if not form.confirms_moves(
            preview_rotation(get_unit_of_work(), holder, schedule_id, rotation_id, None)
        ):
            schedule = show_schedule(get_unit_of_work(), holder, schedule_id)
            page = "on_call/confirm_removal.html"
            return render_form_page(page, form, holder=holder, schedule=schedule)
        put_rotation(get_unit_of_work(), holder, schedule_id, rotation_id, None)
        flash("Rotation removed.")
    return _redirect_to_schedule(holder, schedule_id)


def _propose_first_user(holder: ProjectOrGroup, schedule: OnCallSchedule) -> list[str]:
    """Propose the signed-in user as the first user of a schedule's first rotation."""
    me = get_current_user().username
    return [me] if not schedule.rotations and me in list_eligible_names(holder) else []


def _add_requested_rows(form: RotationForm) -> RotationForm:
    """Return the form, with additional rows if a browser without JavaScript requested them."""
    return form.build_form_with_empty_rows() if _is_row_request() else form


def _is_row_request() -> bool:
    return request.form.get("do") == "add_rows"


def _save_rotation(
    holder: ProjectOrGroup, schedule_id: int, form: RotationForm, replaced: int | None
) -> bool:
    """Store the posted rotation, and return whether it was stored.

    If the rotation is not valid, the errors are added to the form.
    """
    if not form.is_submitted() or _is_row_request():
        return False
    if request.form.get("do") == "preview":
        form.validate()
        return False

    def save_if_confirmed() -> OnCallSchedule | None:
        wanted = form.entered_rotation
        if not form.confirms_moves(
            preview_rotation(get_unit_of_work(), holder, schedule_id, replaced, wanted)
        ):
            return None
        return put_rotation(get_unit_of_work(), holder, schedule_id, replaced, wanted)

    return form.run_if_valid(save_if_confirmed) is not None


def _get_rotation(schedule: OnCallSchedule, rotation_id: int) -> OnCallRotation:
    found = next((each for each in schedule.rotations if each.id == rotation_id), None)
    if found is None:
        message = "This rotation was changed or removed in the meantime. Check the schedule."
        raise NotFoundError(message)
    return found


def _redirect_to_schedule(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    return redirect(url_for("on_call_schedules.show", **holder.url_values, schedule_id=schedule_id))


def _render_form(
    holder: ProjectOrGroup,
    schedule: OnCallSchedule,
    form: RotationForm,
    rotation: OnCallRotation | None,
) -> ResponseReturnValue:
    picture, problem = None, ""
    try:
        picture = _preview_turns(holder, schedule, form, rotation)
    except InvalidError as error:
        problem = str(error)
    return render_form_page(
        "on_call/rotation_form.html",
        form,
        holder=holder,
        schedule=schedule,
        rotation=rotation,
        names=list_eligible_names(holder),
        picture=picture,
        problem=problem,
    )


def _preview_turns(
    holder: ProjectOrGroup,
    schedule: OnCallSchedule,
    form: RotationForm,
    rotation: OnCallRotation | None,
) -> LaneChart | None:
    """Return a chart with one turn for each user, or None while the form is incomplete.

    Raise InvalidError if a field is invalid.
    """
    if form.errors or not any(form.users.data):
        return None
    found = preview_turns(
        get_unit_of_work(),
        holder,
        schedule.id,
        rotation.id if rotation else None,
        form.entered_rotation,
    )
    return LaneChart.from_lanes([found.lane], found.users, found.period, schedule.time_zone)
