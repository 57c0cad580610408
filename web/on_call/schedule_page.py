"""The page of one on-call schedule, which several views render."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.database.list_queries import one_of
from domain.errors import QueryError
from domain.escalations.steps import Target, TargetKind
from domain.escalations.usage import policies_with
from domain.on_call import overrides, swaps
from domain.on_call.change_permissions import Changer
from domain.on_call.feeds import find_feed
from domain.on_call.final_schedule import Source
from domain.on_call.people import candidates, people
from domain.on_call.restrictions import Period
from domain.on_call.schedules import ScheduleView
from domain.on_call.shifts import Shift, schedules_now, shifts_of
from domain.projects.views import ProjectView
from domain.time_zones import zone
from web.extensions import db
from web.on_call.calendar_view import FIRST, LAST, CalendarView, Grid
from web.services import now

#: So far ahead shifts can be chosen for a swap, and so many of them.
_SWAPPED_WITHIN, _MOST_SHIFTS = timedelta(days=56), 120
_MOST_CANDIDATES = 500


def changer(project: ProjectView) -> Changer:
    """Return what the signed-in user may change."""
    return Changer(user_id=current_user.id, may_change_all=project.can_maintain)


def names_to_choose(project: ProjectView) -> tuple[str, ...]:
    """Return the names of users who can be on call."""
    return candidates(
        project.namespace, most=_MOST_CANDIDATES, session=db.session(), today=now().date()
    )


def shifts_to_swap(schedule: ScheduleView) -> Sequence[Shift]:
    """Return the shifts of the next weeks that can be swapped, the running ones among them."""
    moment = now()
    # From a day on, not from a moment: a form that is posted finds the same beginnings.
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    within = Period(today - _SWAPPED_WITHIN, today + _SWAPPED_WITHIN)
    found = shifts_of(schedule.id, within, session=db.session(), now=moment)
    shown = [
        each
        for each in found
        if each.end > moment
        and each.duties
        and all(duty.source is not Source.OVERRIDE for duty in each.duties)
    ]
    return shown[:_MOST_SHIFTS]


def asked_grid(given: Mapping[str, str], schedule: ScheduleView) -> Grid:
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


def _shifts(schedule: ScheduleView, grid: Grid, moment: datetime) -> Sequence[Shift]:
    """Return the shifts to show; before the first rotation nobody could be on call: no gap."""
    within = Period(max(grid.period.start, schedule.created_at), grid.period.end)
    found = shifts_of(schedule.id, within, session=db.session(), now=moment)
    begins_late = bool(found) and found[0].is_gap and found[0].start == schedule.created_at
    return found[1:] if begins_late and found[0].end <= moment else found


def schedule_page(project: ProjectView, schedule: ScheduleView, grid: Grid) -> ResponseReturnValue:
    """Render the page of a schedule."""
    session, moment = db.session(), now()
    shifts = _shifts(schedule, grid, moment)
    ids = {user_id for each in schedule.rotations for user_id in each.user_ids}
    able = set(names_to_choose(project))
    named = people(ids, session=session)
    return render_template(
        "on_call/schedule.html",
        project=project,
        schedule=schedule,
        schedules=schedules_now([schedule], session=session, now=moment),
        grid=grid,
        weeks=grid.weeks(shifts, now=moment),
        policies=policies_with(
            Target(TargetKind.SCHEDULE, schedule.id), project.id, session=session
        ),
        gaps=[each for each in shifts if each.is_gap and each.end > moment],
        people=named,
        absent=[each for each in named.values() if each.username not in able],
        overrides=overrides.overrides_ahead(schedule.id, session=session, now=moment),
        swaps=swaps.swaps_ahead(schedule.id, session=session, now=moment),
        feed=find_feed(schedule.id, current_user.id, session=session),
    )
