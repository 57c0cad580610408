"""Pages for on-call schedules: current users, settings, overrides and swaps."""

from collections.abc import Callable
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.on_call.schedule_page import (
    list_eligible_names,
    list_swappable_turns,
    parse_bar_time,
    parse_calendar_grid,
    render_schedule_page,
)
from domain.access.actor import UnitOfWork
from domain.core.errors import ConflictError, DomainError, ForbiddenError
from domain.core.types.validation import validate_body
from domain.paging.on_call import actions, swap_requests
from domain.paging.on_call.absences import actions as absence_actions
from domain.paging.on_call.overrides_and_swaps import (
    create_override,
    create_swap,
    end_override,
    find_accepted_swap_ids,
    list_own_swaps,
    undo_swap,
)
from domain.paging.on_call.schedules import list_all_schedules
from domain.paging.on_call.shifts import list_schedules_on_call
from domain.paging.on_call.swap_request_states import SwapRequestState
from domain.paging.on_call.swap_request_types import SwapRequestAnswer
from domain.paging.on_call.types import (
    NewSchedule,
    OnCallSchedule,
    ScheduleChange,
)
from domain.paging.page_digests.projects import find_on_call_digest
from domain.projects.views import ProjectOrGroup
from forms.base import Form
from forms.on_call import ImportedCalendarForm, OverrideForm, ScheduleForm, SwapForm
from web.access.decorators import get_current_user, permission_required
from web.http.endpoints import NamespaceBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query
from web.pages.live_pages import render_live_page
from web.services import get_current_time

on_call_schedules = NamespaceBlueprint("on_call_schedules", __name__, below="on_call/schedules")
_DEFAULT_NAME = "Primary"
_SCHEDULE_PATH = "/<int:schedule_id>"
on_call = NamespaceBlueprint("on_call", __name__, below="on_call")
on_call_changes = NamespaceBlueprint(
    "on_call_changes", __name__, below="on_call/schedules/<int:schedule_id>"
)


@on_call_schedules.route("/new", methods=["GET", "POST"])
@permission_required("on_call_schedules.create")
def new(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Create a schedule. Rotations are added on the schedule's page."""
    is_first = not list_all_schedules(get_unit_of_work(), holder)
    form = ScheduleForm(
        name=_DEFAULT_NAME if is_first else None, time_zone=get_current_user().time_zone
    )
    if request.method == "GET":
        return _render_form(holder, form)
    created = form.run_if_valid(
        lambda: actions.create_schedule(
            get_unit_of_work(), holder, form.build_entered_body(NewSchedule)
        )
    )
    if created is None:
        return _render_form(holder, form)
    flash("Schedule created. Add a rotation next.")
    url = url_for("on_call_rotations.new", **holder.url_values, schedule_id=created.id)
    return redirect(url)


@on_call_schedules.get(_SCHEDULE_PATH)
@permission_required("on_call_schedules.show").with_changes(is_heavy=True, has_mark=True)
def show(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Show the current and next users on call, the calendar, rotations, overrides and swaps."""
    schedule = actions.show_schedule(get_unit_of_work(), holder, schedule_id)
    given = get_list_query("view", "day", "turn", "page")
    return render_live_page(
        find_on_call_digest(get_unit_of_work(), holder, schedule_id),
        lambda: render_schedule_page(
            holder, schedule, parse_calendar_grid(given, schedule), given.get("turn", "")
        ),
    )


@on_call_schedules.route(f"{_SCHEDULE_PATH}/edit", methods=["GET", "POST"])
@permission_required("on_call_schedules.change")
def edit(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Change the name, description and time zone of a schedule."""
    before = actions.show_schedule(get_unit_of_work(), holder, schedule_id)
    form = ScheduleForm(obj=before)
    if request.method == "GET":
        return _render_form(holder, form, before)

    def change_if_confirmed() -> OnCallSchedule | None:
        wanted = form.build_entered_body(ScheduleChange)
        if not form.confirms_moves(
            actions.preview_schedule_change(get_unit_of_work(), holder, schedule_id, wanted)
        ):
            return None
        return actions.change_schedule(get_unit_of_work(), holder, schedule_id, wanted)

    if form.run_if_valid(change_if_confirmed) is None:
        return _render_form(holder, form, before)
    flash("Schedule saved.")
    return _redirect_to_schedule(holder, schedule_id)


@on_call_schedules.post(f"{_SCHEDULE_PATH}/delete")
@permission_required("on_call_schedules.delete")
def delete(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Delete a schedule with its rotations, overrides and swaps."""
    try:
        deleted = actions.delete_schedule(get_unit_of_work(), holder, schedule_id)
    except ConflictError as error:
        flash(str(error), "error")
        return _redirect_to_schedule(holder, schedule_id)
    flash(f"{deleted.name} was deleted.")
    return redirect(url_for("on_call.index", **holder.url_values))


def _render_form(
    holder: ProjectOrGroup, form: ScheduleForm, schedule: OnCallSchedule | None = None
) -> ResponseReturnValue:
    return render_form_page("on_call/schedule_form.html", form, holder=holder, schedule=schedule)


@on_call.get("")
@permission_required("on_call_schedules.current")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Show the current and next users on call in every schedule."""
    return render_live_page(
        find_on_call_digest(get_unit_of_work(), holder),
        lambda: render_template(
            "on_call/index.html",
            holder=holder,
            schedules=list_schedules_on_call(get_unit_of_work(), holder),
            swaps=list_own_swaps(get_unit_of_work(), holder),
            accepted=find_accepted_swap_ids(get_unit_of_work()),
        ),
    )


@on_call_changes.route("/overrides/new", methods=["GET", "POST"])
@permission_required("on_call_overrides.create")
def new_override(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Put a user on call for a period, instead of the users in the rotations."""
    schedule = actions.show_schedule(get_unit_of_work(), holder, schedule_id)
    names = list_eligible_names(holder)
    given = get_list_query("starts_at", "ends_at", "instead_of")
    form = OverrideForm(
        schedule=schedule,
        names=names,
        user=get_current_user().username,
        instead_of=given.get("instead_of", ""),
        start=parse_bar_time(given, "starts_at") or get_current_time(),
        end=parse_bar_time(given, "ends_at"),
    )
    if _try_shift_change(
        form,
        lambda: create_override(get_unit_of_work(), holder, schedule_id, form.entered_override),
    ):
        flash("Override saved.")
        return _redirect_to_schedule(holder, schedule_id)
    return render_form_page("on_call/override_form.html", form, holder=holder, schedule=schedule)


@on_call_changes.post("/overrides/<int:override_id>/delete")
@permission_required("on_call_overrides.delete")
def delete_override(
    holder: ProjectOrGroup, schedule_id: int, override_id: int
) -> ResponseReturnValue:
    """Delete an override, or end it if it has started."""
    return _apply_and_redirect(holder, schedule_id, override_id, end_override, "Override removed.")


@on_call_changes.route("/swaps/new", methods=["GET", "POST"])
@permission_required("on_call_swap_requests.create")
def new_swap(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Request a swap of two shifts, or swap them immediately as a Maintainer."""
    schedule = actions.show_schedule(get_unit_of_work(), holder, schedule_id)
    given = get_list_query("shift", "other_shift")
    own = None if holder.can_maintain else get_current_user().username
    turns = list_swappable_turns(schedule, with_current=holder.can_maintain)
    form = SwapForm(schedule=schedule, turns=turns, own=own, **given.to_dict())
    is_direct = request.form.get("do") == "swap"
    act: Callable[..., object] = create_swap if is_direct else swap_requests.create_swap_request
    if _try_shift_change(
        form, lambda: act(get_unit_of_work(), holder, schedule_id, form.entered_swap)
    ):
        flash(
            "Shifts swapped."
            if is_direct
            else "Swap requested. Nothing changes until it is accepted."
        )
        return _redirect_to_schedule(holder, schedule_id)
    return render_form_page(
        "on_call/swap_form.html", form, holder=holder, schedule=schedule, own=own
    )


@on_call_changes.post("/swap_requests/<int:request_id>/answer")
@permission_required("on_call_swap_requests.answer")
def answer_swap_request(
    holder: ProjectOrGroup, schedule_id: int, request_id: int
) -> ResponseReturnValue:
    """Accept, decline or withdraw a swap request."""
    with show_errors_on_next_page(DomainError):
        body = validate_body(SwapRequestAnswer, {"answer": request.form.get("answer", "")})
        answered = swap_requests.answer_swap_request(
            get_unit_of_work(), holder, schedule_id, request_id, body
        )
        is_swapped = answered.state == SwapRequestState.ACCEPTED
        flash("Shifts swapped." if is_swapped else f"Swap request {answered.state}.")
    return _redirect_to_schedule(holder, schedule_id)


@on_call_changes.post("/swaps/<int:swap_id>/delete")
@permission_required("on_call_swaps.delete")
def delete_swap(holder: ProjectOrGroup, schedule_id: int, swap_id: int) -> ResponseReturnValue:
    """Undo the remaining part of a swap."""
    return _apply_and_redirect(holder, schedule_id, swap_id, undo_swap, "Swap undone.")


@on_call_changes.route("/holiday_calendars/new", methods=["GET", "POST"])
@permission_required("on_call_holiday_calendars.create")
def new_holiday_calendar(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Add a holiday calendar to a schedule, from a URL or a file."""
    schedule = actions.show_schedule(get_unit_of_work(), holder, schedule_id)
    form = ImportedCalendarForm()
    if form.run_if_valid(
        lambda: absence_actions.create_holiday_calendar(
            get_unit_of_work(), holder, schedule_id, form.entered_calendar
        )
    ):
        flash("Calendar added.")
        return _redirect_to_schedule(holder, schedule_id)
    return render_form_page(
        "on_call/holiday_calendar_form.html", form, holder=holder, schedule=schedule
    )


@on_call_changes.post("/holiday_calendars/<int:calendar_id>/<any(refresh, delete):change>")
@permission_required("on_call_holiday_calendars.delete")
def change_holiday_calendar(
    holder: ProjectOrGroup, schedule_id: int, calendar_id: int, change: str
) -> ResponseReturnValue:
    """Refresh or remove a holiday calendar."""
    act, sentence = absence_actions.delete_holiday_calendar, "Calendar removed."
    if change == "refresh":
        act = absence_actions.refresh_holiday_calendar
        sentence = "The calendar is read within a minute."
    return _apply_and_redirect(holder, schedule_id, calendar_id, act, sentence)


def _apply_and_redirect(
    holder: ProjectOrGroup,
    schedule_id: int,
    change_id: int,
    act: Callable[[UnitOfWork, ProjectOrGroup, int, int], object],
    sentence: str,
) -> ResponseReturnValue:
    with show_errors_on_next_page(DomainError):
        act(get_unit_of_work(), holder, schedule_id, change_id)
        flash(sentence)
    return _redirect_to_schedule(holder, schedule_id)


def _try_shift_change(form: Form, change_shift: Callable[[], Any]) -> bool:
    """Apply the submitted change, and return whether it succeeded.

    If the user is not allowed to change the shifts, the page shows the reason.
    """
    try:
        return form.is_submitted() and form.run_if_valid(change_shift) is not None
    except ForbiddenError as error:
        form.add_error("", str(error))
        return False


def _redirect_to_schedule(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    return redirect(url_for("on_call_schedules.show", **holder.url_values, schedule_id=schedule_id))
