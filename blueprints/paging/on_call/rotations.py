"""Pages that add, change and end the rotations of an on-call schedule."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.on_call.schedule_page import names_to_choose
from domain.core.errors import InvalidError, NotFoundError
from domain.paging.on_call.actions import preview_rotation, put_rotation, show_schedule
from domain.paging.on_call.types import OnCallRotation, OnCallSchedule
from domain.projects.views import Holder
from forms.on_call import MovingForm, RotationForm
from web.access.decorators import get_current_user, permitted
from web.http.endpoints import NamespaceBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page

on_call_rotations = NamespaceBlueprint(
    "on_call_rotations", __name__, below="on_call/schedules/<int:schedule_id>/rotations"
)


@on_call_rotations.route("/new", methods=["GET", "POST"])
@permitted("on_call_rotations.put")
def new(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Add a rotation above the others."""
    schedule = show_schedule(work(), holder, schedule_id)
    form = _with_rows(RotationForm(users=_first_user(holder, schedule)))
    if _is_put(holder, schedule_id, form, None):
        flash("Rotation added.")
        return _to_schedule(holder, schedule_id)
    return _form_page(holder, schedule, form, None)


@on_call_rotations.route("/<int:rotation_id>/edit", methods=["GET", "POST"])
@permitted("on_call_rotations.put")
def edit(holder: Holder, schedule_id: int, rotation_id: int) -> ResponseReturnValue:
    """Change a rotation from now on; past shifts stay unchanged."""
    schedule = show_schedule(work(), holder, schedule_id)
    rotation = _rotation(schedule, rotation_id)
    form = _with_rows(RotationForm.of(rotation))
    if _is_put(holder, schedule_id, form, rotation_id):
        flash("Rotation saved. It applies from now on. Past shifts do not change.")
        return _to_schedule(holder, schedule_id)
    return _form_page(holder, schedule, form, rotation)


@on_call_rotations.post("/<int:rotation_id>/delete")
@permitted("on_call_rotations.put")
def delete(holder: Holder, schedule_id: int, rotation_id: int) -> ResponseReturnValue:
    """End a rotation; its past shifts stay unchanged."""
    form = MovingForm()
    with refusals_shown(InvalidError):
        if not form.confirms(preview_rotation(work(), holder, schedule_id, rotation_id, None)):
            schedule = show_schedule(work(), holder, schedule_id)
            page = "on_call/confirm_removal.html"
            return form_page(page, form, holder=holder, schedule=schedule)
        put_rotation(work(), holder, schedule_id, rotation_id, None)
        flash("Rotation removed.")
    return _to_schedule(holder, schedule_id)


def _first_user(holder: Holder, schedule: OnCallSchedule) -> list[str]:
    """Return the user who adds the first rotation, as its most likely first user."""
    me = get_current_user().username
    return [me] if not schedule.rotations and me in names_to_choose(holder) else []


def _with_rows(form: RotationForm) -> RotationForm:
    """Return the form with more rows if the user requested them without a script."""
    return form.with_more_rows() if _asks_for_rows() else form


def _asks_for_rows() -> bool:
    return request.form.get("do") == "add_rows"


def _is_put(holder: Holder, schedule_id: int, form: RotationForm, replaced: int | None) -> bool:
    """Store the posted rotation, or show the errors and return False."""
    if not form.is_submitted() or _asks_for_rows():
        return False

    def put() -> OnCallSchedule | None:
        wanted = form.rotation
        if not form.confirms(preview_rotation(work(), holder, schedule_id, replaced, wanted)):
            return None
        return put_rotation(work(), holder, schedule_id, replaced, wanted)

    return form.carry_out(put) is not None


def _rotation(schedule: OnCallSchedule, rotation_id: int) -> OnCallRotation:
    found = next((each for each in schedule.rotations if each.id == rotation_id), None)
    if found is None:
        message = "This rotation was changed or removed in the meantime. Check its schedule."
        raise NotFoundError(message)
    return found


def _to_schedule(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    return redirect(url_for("on_call_schedules.show", **holder.url_values, schedule_id=schedule_id))


def _form_page(
    holder: Holder,
    schedule: OnCallSchedule,
    form: RotationForm,
    rotation: OnCallRotation | None,
) -> ResponseReturnValue:
    return form_page(
        "on_call/rotation_form.html",
        form,
        holder=holder,
        schedule=schedule,
        rotation=rotation,
        names=names_to_choose(holder),
    )
