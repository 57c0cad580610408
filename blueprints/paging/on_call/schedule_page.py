"""Renders the on-call schedule page for several views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.accounts.profiles import UserReference
from domain.core.database.pagination import PageResult, get_choice
from domain.core.errors import QueryError
from domain.core.time_zones import get_zone
from domain.core.types.pagination import OffsetQuery
from domain.paging.escalations.policies import find_policies_that_page
from domain.paging.escalations.policy_steps import Target, TargetKind
from domain.paging.on_call.absences.actions import find_holidays, list_holiday_calendars
from domain.paging.on_call.absences.conflicts import list_conflicts
from domain.paging.on_call.absences.types import OnCallHoliday
from domain.paging.on_call.calendar_feeds import find_feed
from domain.paging.on_call.dependent_incident_rules import find_dependent_rules
from domain.paging.on_call.eligible_users import list_eligible_usernames
from domain.paging.on_call.final_schedule import DutySource
from domain.paging.on_call.lanes import (
    Bar,
    DayTick,
    Lane,
    build_day_period,
    build_day_ticks,
    choose_colors,
    find_now_offset,
)
from domain.paging.on_call.my_on_call import (
    MAX_TURN_LOOKBACK,
    get_schedule_owner,
    list_schedule_turns,
)
from domain.paging.on_call.my_on_call_types import OnCallTurn, OwnSchedule
from domain.paging.on_call.overrides_and_swaps import (
    find_accepted_swap_ids,
    list_upcoming_overrides,
    list_upcoming_swaps,
)
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.shifts import (
    build_schedules_on_call,
    compute_balance,
    list_schedule_shifts,
    load_lanes,
)
from domain.paging.on_call.swap_requests import list_open_swap_requests
from domain.paging.on_call.types import OnCallSchedule, OnCallShift
from domain.projects.views import ProjectOrGroup
from domain.reports.actions import list_latest_handoff_notes
from web.access.decorators import get_current_user
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import (
    LinkedPage,
    build_numbered_page_links,
    get_page_request,
    parse_day,
)
from web.services import get_current_time

_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
#: First and last day that a calendar can show.
FIRST_CALENDAR_DAY, LAST_CALENDAR_DAY = date(2000, 2, 1), date(2099, 11, 1)
#: Number of users with distinct colors.
USER_COLORS = 10
#: Format of shift start times in URLs, in UTC.
BAR_TIME_FORMAT = "%Y%m%dT%H%M%S"
#: Length of the future period in which turns can be swapped, and maximum number of turns.
_SWAP_PERIOD, _MAX_TURNS = timedelta(days=56), 120
_MAX_CANDIDATES = 500
_WHOLE_LIST = OffsetQuery(per_page=100)
#: Maximum number of columns in a picture on a phone.
_MAX_COLUMNS = 4


class CalendarView(StrEnum):
    """The periods that a calendar can show: two weeks or a month."""

    WEEKS = "weeks"
    MONTH = "month"


@dataclass(frozen=True, kw_only=True)
class LaneChart:
    """The lanes of a schedule or rotation, and the days and users that they show."""

    lanes: Sequence[Lane]
    ticks: Sequence[DayTick]
    #: Position of the current time. None if it is outside the period.
    now: float | None
    today: date
    users: Mapping[int, UserReference]
    #: Color numbers by user ID.
    colors: Mapping[int, int]
    holidays: Sequence[OnCallHoliday] = ()
    #: Absences by user ID.
    absences: Mapping[int, Sequence[Period]] = field(default_factory=dict)

    @classmethod
    def from_lanes(
        cls,
        lanes: Sequence[Lane],
        users: Mapping[int, UserReference],
        period: Period,
        time_zone: str,
    ) -> "LaneChart":
        """Return a chart of the lanes in a period."""
        now = get_current_time()
        return cls(
            lanes=lanes,
            ticks=build_day_ticks(period, time_zone),
            now=find_now_offset(now, period),
            today=now.astimezone(get_zone(time_zone)).date(),
            users=users,
            colors=choose_colors(sorted(users), USER_COLORS),
        )

    def describe_absence(self, user_id: int, shift: OnCallShift) -> str:
        """Return "Absent" or "Partly absent", or an empty string for users who are not absent."""
        start, end = shift.starts_at, shift.ends_at
        for each in self.absences.get(user_id, ()):
            if each.start < end and each.end > start:
                return "Absent" if each.start <= start and each.end >= end else "Partly absent"
        return ""

    def list_holiday_names(self, day: date) -> Sequence[str]:
        """Return the names of the holidays on a day."""
        return [each.name for each in self.holidays if each.first_day <= day <= each.last_day]

    @property
    def lanes_for_narrow_screens(self) -> Sequence[Lane]:
        """The first lanes that fit next to each other on a phone."""
        rows = list(accumulate(lane.rows for lane in self.lanes))
        return self.lanes[: max(sum(each <= _MAX_COLUMNS for each in rows), 1)]


@dataclass(frozen=True, kw_only=True)
class SelectedBar:
    """A shift or gap that the user selected in the chart."""

    bar: Bar
    user: UserReference | None
    #: Turn that contains the shift. None if the turn cannot be swapped.
    turn: OnCallTurn | None

    @property
    def period(self) -> Period:
        """Period of the turn, or of the shift if its turn cannot be swapped."""
        if self.turn:
            return Period(self.turn.starts_at, self.turn.ends_at)
        return Period(self.bar.start, self.bar.end)


@dataclass(frozen=True, kw_only=True)
class CalendarGrid:
    """The days that a calendar shows."""

    view: CalendarView
    #: Day within the period.
    day: date
    title: str
    first: date
    last: date
    time_zone: str

    @classmethod
    def from_day(cls, day: date, view: CalendarView, time_zone: str) -> "CalendarGrid":
        """Return two weeks from a day, or the month that contains the day."""
        if view is CalendarView.WEEKS:
            first, last = day, day + 2 * _WEEK - _DAY
            title = f"{first.day} {first:%b} to {last.day} {last:%b %Y}"
        else:
            first = day.replace(day=1)
            last = _get_next_month(first) - _DAY
            title = f"{first:%B %Y}"
        return cls(view=view, day=day, title=title, first=first, last=last, time_zone=time_zone)

    @property
    def period(self) -> Period:
        """Period from the start of the first day to the end of the last day."""
        return build_day_period(self.first, self.last, self.time_zone)

    @property
    def day_in_previous_period(self) -> date:
        """A day in the previous period."""
        if self.view is CalendarView.WEEKS:
            return max(self.first - 2 * _WEEK, FIRST_CALENDAR_DAY)
        return max((self.first - _DAY).replace(day=1), FIRST_CALENDAR_DAY)

    @property
    def day_in_next_period(self) -> date:
        """A day in the following period."""
        return min(self.last + _DAY, LAST_CALENDAR_DAY)


def _get_next_month(first_day: date) -> date:
    return (first_day + timedelta(days=31)).replace(day=1)


def list_eligible_names(holder: ProjectOrGroup) -> tuple[str, ...]:
    """Return the names of users who can be on call."""
    return list_eligible_usernames(
        holder.namespace,
        maximum=_MAX_CANDIDATES,
        session=db.session(),
        today=get_current_time().date(),
    )


def list_swappable_turns(
    schedule: OnCallSchedule, *, with_current: bool = True
) -> Sequence[OnCallTurn]:
    """Return the upcoming turns that can be swapped.

    If `with_current` is true, current turns are included. Only Maintainers can swap current turns.
    """
    moment = get_current_time()
    # The period starts at midnight, so that a submitted form offers the same turns as the form
    # that was shown.
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    within = Period(today - MAX_TURN_LOOKBACK, today + _SWAP_PERIOD)
    shown = [
        each
        for each in list_schedule_turns(get_unit_of_work(), schedule.id, within)
        if moment < (each.ends_at if with_current else each.starts_at)
        and not each.may_continue
        and each.source != DutySource.OVERRIDE
    ]
    return shown[:_MAX_TURNS]


def list_cover_usernames(schedules: Sequence[OwnSchedule]) -> list[str]:
    """Return the names of other users who can be on call in one of the given schedules."""
    holders = {each.path: each for each in schedules}.values()
    found = {
        name
        for each in holders
        for name in list_eligible_names(get_schedule_owner(get_unit_of_work(), each))
    }
    return sorted(found - {current_user.username}, key=str.lower)


def get_common_time_zone(schedules: Sequence[OwnSchedule]) -> str:
    """Return the time zone that all schedules share, or the user's time zone if they differ."""
    zones = {each.time_zone for each in schedules}
    return zones.pop() if len(zones) == 1 else get_current_user().time_zone


def parse_calendar_grid(arguments: Mapping[str, str], schedule: OnCallSchedule) -> CalendarGrid:
    """Return the requested part of the calendar. The default is two weeks from today."""
    view = get_choice(arguments, "view", [each.value for each in CalendarView], CalendarView.WEEKS)
    today = get_current_time().astimezone(get_zone(schedule.time_zone)).date()
    day = parse_day(arguments) or today
    if not FIRST_CALENDAR_DAY <= day <= LAST_CALENDAR_DAY:
        raise QueryError(
            f"`day` must be between {FIRST_CALENDAR_DAY} and {LAST_CALENDAR_DAY}.", field="day"
        )
    return CalendarGrid.from_day(day, CalendarView(view), schedule.time_zone)


def parse_bar_time(given: Mapping[str, str], name: str) -> datetime | None:
    """Parse a time parameter of a link in the chart. Return None if it is missing.

    Raise QueryError for an invalid value.
    """
    if not given.get(name):
        return None
    try:
        found = datetime.strptime(given[name], BAR_TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError as error:
        raise QueryError(f"`{name}` must be a time such as 20270531T090000.", field=name) from error
    if not FIRST_CALENDAR_DAY <= found.date() <= LAST_CALENDAR_DAY:
        message = f"`{name}` must be between {FIRST_CALENDAR_DAY} and {LAST_CALENDAR_DAY}."
        raise QueryError(message, field=name)
    return found


def _list_shown_shifts(schedule: OnCallSchedule, grid: CalendarGrid) -> Sequence[OnCallShift]:
    """Return the shifts that the calendar shows.

    The time before the first rotation is not shown as a gap.
    """
    within = Period(max(grid.period.start, schedule.created_at), grid.period.end)
    found = list_schedule_shifts(get_unit_of_work(), schedule.id, within)
    begins_late = bool(found) and found[0].is_gap and found[0].starts_at == schedule.created_at
    return found[1:] if begins_late and found[0].ends_at <= get_current_time() else found


def _find_selected_bar(
    picture: LaneChart, selection: str, schedule: OnCallSchedule, grid: CalendarGrid
) -> SelectedBar | None:
    """Return the shift that `username@time` selects, the gap that `@time` selects, or None."""
    username, _, text = selection.rpartition("@")
    moment = parse_bar_time({"turn": text}, "turn") or grid.period.end
    for bar in picture.lanes[0].bars:
        user = picture.users[bar.duty.user_id] if bar.duty else None
        # The times in links have no fractions of a second.
        start, end = (each.replace(microsecond=0) for each in (bar.start, bar.end))
        if start <= moment < end and (user.username if user else "") == username:
            turns = list_swappable_turns(schedule) if user else ()
            around = (
                each
                for each in turns
                if each.user == user and each.starts_at <= bar.start and bar.end <= each.ends_at
            )
            return SelectedBar(bar=bar, user=user, turn=next(around, None))
    return None


def render_schedule_page(
    holder: ProjectOrGroup, schedule: OnCallSchedule, grid: CalendarGrid, selection: str = ""
) -> ResponseReturnValue:
    """Render the page for a schedule. `selection` is the ID of the selected bar."""
    session, work = db.session(), get_unit_of_work()
    target = Target(TargetKind.SCHEDULE, schedule.id)
    return render_template(
        "on_call/schedule.html",
        holder=holder,
        schedule=schedule,
        schedules=build_schedules_on_call(work, [schedule]),
        policies=find_policies_that_page(target, holder, session=session),
        rules=find_dependent_rules([schedule.id], holder, session=session),
        overrides=list_upcoming_overrides(work, holder, schedule.id),
        swaps=list_upcoming_swaps(work, holder, schedule.id),
        accepted=find_accepted_swap_ids(work),
        requests=list_open_swap_requests(work, holder, schedule.id),
        conflicts=list_conflicts(work, holder, schedule.id, _WHOLE_LIST).items,
        swappable=list_swappable_turns(schedule, with_current=holder.can_maintain),
        calendars=list_holiday_calendars(work, holder, schedule.id, _WHOLE_LIST).items,
        notes=list_latest_handoff_notes(work, holder, schedule.id),
        feed=find_feed(schedule.id, current_user.id, session=session, now=get_current_time()),
        **_build_calendar_context(holder, schedule, grid, selection),
    )


def _build_shift_page(shifts: Sequence[OnCallShift]) -> LinkedPage:
    part = get_page_request(order_by="starts_at")
    shown = tuple(shifts[part.offset : part.offset + part.size])
    return build_numbered_page_links(PageResult(items=shown, total=len(shifts)), part)


def _build_calendar_context(
    holder: ProjectOrGroup, schedule: OnCallSchedule, grid: CalendarGrid, selection: str
) -> dict[str, Any]:
    """Return the template variables for the calendar."""
    shifts, moment = _list_shown_shifts(schedule, grid), get_current_time()
    users = {user.id: user for each in schedule.rotations for user in each.users}
    able = set(list_eligible_names(holder))
    gaps_from = shifts[0].starts_at if shifts else grid.period.end
    lanes, shown, absences = load_lanes(
        get_unit_of_work(), schedule.id, grid.period, gaps_from=gaps_from
    )
    picture = replace(
        LaneChart.from_lanes(lanes, {**users, **shown}, grid.period, schedule.time_zone),
        holidays=find_holidays(schedule.id, grid.first, grid.last, session=db.session()),
        absences=absences,
    )
    return {
        "grid": grid,
        "picture": picture,
        "shift_page": _build_shift_page(shifts),
        "selected": _find_selected_bar(picture, selection, schedule, grid) if selection else None,
        "balance": compute_balance(shifts, grid.period),
        "gaps": [each for each in shifts if each.is_gap and each.ends_at > moment],
        "absent": [each for each in users.values() if each.username not in able],
    }
