"""The page of one on-call schedule, which several views render."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.database.list_queries import one_of
from domain.errors import QueryError
from domain.escalations.steps import Target, TargetKind
from domain.escalations.usage import policies_with
from domain.on_call.feeds import find_feed
from domain.on_call.final_schedule import Source
from domain.on_call.override_actions import overrides_ahead
from domain.on_call.people import candidates
from domain.on_call.restrictions import Period
from domain.on_call.shifts import schedules_now, shifts_of
from domain.on_call.swap_actions import swaps_ahead
from domain.on_call.types import OnCallSchedule, OnCallShift
from domain.projects.views import ProjectView
from domain.time_zones import zone
from web.extensions import db
from web.http.work import work
from web.on_call.calendar_view import FIRST, LAST, CalendarView, Grid
from web.services import now

#: So far ahead shifts can be chosen for a swap, and so many of them.
_SWAPPED_WITHIN, _MOST_SHIFTS = timedelta(days=56), 120
_MOST_CANDIDATES = 500


def names_to_choose(project: ProjectView) -> tuple[str, ...]:
    """Return the names of users who can be on call."""
    return candidates(
        project.namespace, most=_MOST_CANDIDATES, session=db.session(), today=now().date()
    )


def shifts_to_swap(schedule: OnCallSchedule) -> Sequence[OnCallShift]:
    """Return the shifts of the next weeks that can be swapped, the running ones among them."""
    moment = now()
    # From a day on, not from a moment: a form that is posted finds the same beginnings.
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    within = Period(today - _SWAPPED_WITHIN, today + _SWAPPED_WITHIN)
    shown = [
        each
        for each in shifts_of(work(), schedule.id, within)
        if each.ends_at > moment
        and each.on_call
        and all(duty.source != Source.OVERRIDE for duty in each.on_call)
    ]
    return shown[:_MOST_SHIFTS]


def asked_grid(given: Mapping[str, str], schedule: OnCallSchedule) -> Grid:
    """Return the part of the calendar that is asked for: two weeks from now, if nothing is."""
    view = one_of(given, "view", [each.value for each in CalendarView], CalendarView.WEEKS)
    text = given.get("day", "")
    try:
        day = (
            date.fromisoformat(text) if text else now().astimezone(zone(schedule.time_zone)).date()
        )
    except ValueError as error:
        message = "day must be a date like 2027-05-31."
        raise QueryError(message, field="day") from error
    if not FIRST <= day <= LAST:
        message = f"day must be between {FIRST} and {LAST}."
        raise QueryError(message, field="day")
    return Grid.around(day, CalendarView(view), schedule.time_zone)


def _shifts(schedule: OnCallSchedule, grid: Grid) -> Sequence[OnCallShift]:
    """Return the shifts to show; before the first rotation nobody could be on call: no gap."""
    within = Period(max(grid.period.start, schedule.created_at), grid.period.end)
    found = shifts_of(work(), schedule.id, within)
    begins_late = bool(found) and found[0].is_gap and found[0].starts_at == schedule.created_at
    return found[1:] if begins_late and found[0].ends_at <= now() else found


def schedule_page(
    project: ProjectView, schedule: OnCallSchedule, grid: Grid
) -> ResponseReturnValue:
    """Render the page of a schedule."""
    session, moment = db.session(), now()
    shifts = _shifts(schedule, grid)
    able = set(names_to_choose(project))
    users = {user.id: user for each in schedule.rotations for user in each.users}
    return render_template(
        "on_call/schedule.html",
        project=project,
        schedule=schedule,
        schedules=schedules_now(work(), [schedule]),
        grid=grid,
        weeks=grid.weeks(shifts, now=moment),
        policies=policies_with(
            Target(TargetKind.SCHEDULE, schedule.id), project.id, session=session
        ),
        gaps=[each for each in shifts if each.is_gap and each.ends_at > moment],
        absent=[each for each in users.values() if each.username not in able],
        overrides=overrides_ahead(work(), project, schedule.id),
        swaps=swaps_ahead(work(), project, schedule.id),
        feed=find_feed(schedule.id, current_user.id, session=session),
    )
