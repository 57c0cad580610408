"""Pages for on-call schedules: current users, settings, overrides and swaps."""

from collections.abc import Callable
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.on_call.schedule_page import (
    asked_grid,
    names_to_choose,
    schedule_page,
    turns_to_swap,
)
from domain.access.actor import Work
from domain.core.errors import ConflictError, DomainError, ForbiddenError
from domain.paging.on_call import actions
from domain.paging.on_call.change_actions import (
    create_override,
    create_swap,
    end_override,
    own_swaps,
    undo_swap,
)
from domain.paging.on_call.schedules import all_schedules
from domain.paging.on_call.shifts import on_call_in_project
from domain.paging.on_call.types import NewSchedule, OnCallSchedule, ScheduleChange
from domain.projects.views import Holder
from forms.base import Form
from forms.on_call import OverrideForm, ScheduleForm, SwapForm
from web.access.decorators import get_current_user, permitted
from web.http.endpoints import NamespaceBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page
from web.pages.list_query import list_query
from web.services import now

on_call_schedules = NamespaceBlueprint("on_call_schedules", __name__, below="on_call/schedules")
_FIRST_NAME = "Primary"
_ONE = "/<int:schedule_id>"
on_call = NamespaceBlueprint("on_call", __name__, below="on_call")
on_call_changes = NamespaceBlueprint(
    "on_call_changes", __name__, below="on_call/schedules/<int:schedule_id>"
)


@on_call_schedules.route("/new", methods=["GET", "POST"])
@permitted("on_call_schedules.create")
def new(holder: Holder) -> ResponseReturnValue:
    """Create a schedule; its rotations are added on its page."""
    is_first = not all_schedules(work(), holder)
    form = ScheduleForm(
        name=_FIRST_NAME if is_first else None, time_zone=get_current_user().time_zone
    )
    if request.method == "GET":
        return _form_page(holder, form)
    created = form.carry_out(
        lambda: actions.create_schedule(work(), holder, form.read(NewSchedule))
    )
    if created is None:
        return _form_page(holder, form)
    flash("Schedule created. Add a rotation next.")
    url = url_for("on_call_rotations.new", **holder.url_values, schedule_id=created.id)
    return redirect(url)


@on_call_schedules.get(_ONE)
@permitted("on_call_schedules.show")
def show(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Show the current and next users on call, the calendar, rotations, overrides and swaps."""
    schedule = actions.show_schedule(work(), holder, schedule_id)
    given = list_query("view", "day")
    return schedule_page(holder, schedule, asked_grid(given, schedule))


@on_call_schedules.route(f"{_ONE}/edit", methods=["GET", "POST"])
@permitted("on_call_schedules.change")
def edit(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Change the name, description and time zone of a schedule."""
    before = actions.show_schedule(work(), holder, schedule_id)
    form = ScheduleForm(obj=before)
    if request.method == "GET":
        return _form_page(holder, form, before)

    def change() -> OnCallSchedule | None:
        wanted = form.read(ScheduleChange)
        if not form.confirms(actions.preview_schedule(work(), holder, schedule_id, wanted)):
            return None
        return actions.change_schedule(work(), holder, schedule_id, wanted)

    if form.carry_out(change) is None:
        return _form_page(holder, form, before)
    flash("Schedule saved.")
    return _to_schedule(holder, schedule_id)


@on_call_schedules.post(f"{_ONE}/delete")
@permitted("on_call_schedules.delete")
def delete(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Delete a schedule with its rotations, overrides and swaps."""
    try:
        deleted = actions.delete_schedule(work(), holder, schedule_id)
    except ConflictError as error:
        flash(str(error), "error")
        return _to_schedule(holder, schedule_id)
    flash(f"{deleted.name} was deleted.")
    return redirect(url_for("on_call.index", **holder.url_values))


def _form_page(
    holder: Holder, form: ScheduleForm, schedule: OnCallSchedule | None = None
) -> ResponseReturnValue:
    return form_page("on_call/schedule_form.html", form, holder=holder, schedule=schedule)


@on_call.get("")
@permitted("on_call_schedules.current")
def index(holder: Holder) -> ResponseReturnValue:
    """Show who is on call now and next in every schedule."""
    return render_template(
        "on_call/index.html",
        holder=holder,
        schedules=on_call_in_project(work(), holder),
        swaps=own_swaps(work(), holder),
    )


@on_call_changes.route("/overrides/new", methods=["GET", "POST"])
@permitted("on_call_overrides.create")
def new_override(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Put one user on call for a period, in place of the users of the rotations."""
    schedule = actions.show_schedule(work(), holder, schedule_id)
    names = names_to_choose(holder)
    form = OverrideForm(schedule=schedule, names=names, user=get_current_user().username, now=now())
    if _is_done(form, lambda: create_override(work(), holder, schedule_id, form.override)):
        flash("Override saved.")
        return _to_schedule(holder, schedule_id)
    return form_page("on_call/override_form.html", form, holder=holder, schedule=schedule)


@on_call_changes.post("/overrides/<int:override_id>/delete")
@permitted("on_call_overrides.delete")
def delete_override(holder: Holder, schedule_id: int, override_id: int) -> ResponseReturnValue:
    """Delete an override, or end it if it has started."""
    return _ended(holder, schedule_id, override_id, end_override, "Override removed.")


@on_call_changes.route("/swaps/new", methods=["GET", "POST"])
@permitted("on_call_swaps.create")
def new_swap(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Swap two shifts of two users."""
    schedule = actions.show_schedule(work(), holder, schedule_id)
    own = None if holder.can_maintain else get_current_user().username
    chosen = list_query("shift").get("shift")
    form = SwapForm(schedule=schedule, turns=turns_to_swap(schedule), own=own, shift=chosen)
    if _is_done(form, lambda: create_swap(work(), holder, schedule_id, form.swap)):
        flash("Shifts swapped.")
        return _to_schedule(holder, schedule_id)
    return form_page("on_call/swap_form.html", form, holder=holder, schedule=schedule, own=own)


@on_call_changes.post("/swaps/<int:swap_id>/delete")
@permitted("on_call_swaps.delete")
def delete_swap(holder: Holder, schedule_id: int, swap_id: int) -> ResponseReturnValue:
    """Undo the remaining part of a swap."""
    return _ended(holder, schedule_id, swap_id, undo_swap, "Swap undone.")


def _ended(
    holder: Holder,
    schedule_id: int,
    change_id: int,
    act: Callable[[Work, Holder, int, int], object],
    sentence: str,
) -> ResponseReturnValue:
    with refusals_shown(DomainError):
        act(work(), holder, schedule_id, change_id)
        flash(sentence)
    return _to_schedule(holder, schedule_id)


def _is_done(form: Form, act: Callable[[], Any]) -> bool:
    """Carry out the posted change, and return whether it succeeded.

    If the user may not change these shifts, the page shows the reason.
    """
    try:
        return form.is_submitted() and form.carry_out(act) is not None
    except ForbiddenError as error:
        form.object_to("", str(error))
        return False


def _to_schedule(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    return redirect(url_for("on_call_schedules.show", **holder.url_values, schedule_id=schedule_id))
