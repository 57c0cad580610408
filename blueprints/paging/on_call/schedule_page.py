"""The page for an on-call schedule, which several views render."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.accounts.profiles import UserReference
from domain.core.database.paging import get_choice
from domain.core.errors import QueryError
from domain.core.time_zones import convert_to_utc, get_zone
from domain.paging.escalations.policies import find_policies_that_page
from domain.paging.escalations.steps import Target, TargetKind
from domain.paging.on_call.change_actions import list_upcoming_overrides, list_upcoming_swaps
from domain.paging.on_call.dependent_rules import find_dependent_rules
from domain.paging.on_call.eligible_users import list_eligible_usernames
from domain.paging.on_call.feeds import find_feed
from domain.paging.on_call.final_schedule import DutySource
from domain.paging.on_call.my_on_call import (
    MAX_TURN_LOOKBACK,
    get_schedule_owner,
    list_schedule_turns,
)
from domain.paging.on_call.own_types import OnCallTurn, OwnSchedule
from domain.paging.on_call.schedule_values import Period
from domain.paging.on_call.shifts import (
    build_schedules_on_call,
    compute_balance,
    list_schedule_shifts,
)
from domain.paging.on_call.types import OnCallSchedule, OnCallShift
from domain.projects.views import ProjectOrGroup
from domain.reports.actions import list_latest_handoff_notes
from web.access.decorators import get_current_user
from web.extensions import db
from web.http.work import get_unit_of_work
from web.services import get_current_time

_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_DAYS_PER_WEEK = 7
#: First and last day that a calendar can show.
FIRST_CALENDAR_DAY, LAST_CALENDAR_DAY = date(2000, 2, 1), date(2099, 11, 1)
#: Number of users with distinct colors.
USER_COLORS = 6
#: Length of the future period with turns that can be swapped, and the maximum number of turns.
_SWAP_PERIOD, _MAX_TURNS = timedelta(days=56), 120
_MAX_CANDIDATES = 500


class CalendarView(StrEnum):
    """The period that a calendar shows."""

    WEEKS = "weeks"
    MONTH = "month"


@dataclass(frozen=True, kw_only=True)
class CalendarEntry:
    """A part of a day in which the same users are on call."""

    #: Start and end in local time. Empty at the start and end of the day.
    start: str
    end: str
    people: tuple[UserReference, ...]
    #: True if an override or a swap changed the users.
    is_changed: bool

    @property
    def color_number(self) -> int | None:
        """Color number of the first user, or None in a gap."""
        return self.people[0].id % USER_COLORS if self.people else None


@dataclass(frozen=True, kw_only=True)
class CalendarDay:
    """A day of a calendar."""

    day: date
    is_today: bool
    #: True if the day belongs to the month that is shown.
    is_inside: bool
    entries: tuple[CalendarEntry, ...]


@dataclass(frozen=True, kw_only=True)
class CalendarGrid:
    """The days that a calendar shows, in whole weeks that start on Monday."""

    view: CalendarView
    #: A day within the period that is shown.
    day: date
    title: str
    first: date
    last: date
    time_zone: str

    @classmethod
    def containing_day(cls, day: date, view: CalendarView, time_zone: str) -> "CalendarGrid":
        """Return the calendar grid that contains a day."""
        monday = day - timedelta(days=day.weekday())
        if view is CalendarView.WEEKS:
            first, last = monday, monday + 2 * _WEEK - _DAY
            title = f"{first} to {last}"
        else:
            begin = day.replace(day=1)
            end = _get_next_month(begin) - _DAY
            first = begin - timedelta(days=begin.weekday())
            last = end + timedelta(days=_DAYS_PER_WEEK - 1 - end.weekday())
            title = f"{begin:%Y-%m}"
        return cls(view=view, day=day, title=title, first=first, last=last, time_zone=time_zone)

    @property
    def period(self) -> Period:
        """Period from the start of the first day to the end of the last day."""
        place = get_zone(self.time_zone)
        return Period(_get_midnight(self.first, place), _get_midnight(self.last + _DAY, place))

    @property
    def day_in_previous_period(self) -> date:
        """A day in the previous period."""
        if self.view is CalendarView.WEEKS:
            return max(self.first - 2 * _WEEK, FIRST_CALENDAR_DAY)
        return max((self.day.replace(day=1) - _DAY).replace(day=1), FIRST_CALENDAR_DAY)

    @property
    def day_in_next_period(self) -> date:
        """A day in the following period."""
        if self.view is CalendarView.WEEKS:
            return min(self.first + 2 * _WEEK, LAST_CALENDAR_DAY)
        return min(_get_next_month(self.day.replace(day=1)), LAST_CALENDAR_DAY)

    def build_weeks(
        self, shifts: Sequence[OnCallShift], *, now: datetime
    ) -> list[list[CalendarDay]]:
        """Return the days with their on-call users, grouped by week."""
        place = get_zone(self.time_zone)
        today = now.astimezone(place).date()
        count = (self.last - self.first).days + 1
        days = [
            CalendarDay(
                day=day,
                is_today=day == today,
                is_inside=self.view is CalendarView.WEEKS or day.month == self.day.month,
                entries=_build_entries(day, place, shifts),
            )
            for day in (self.first + _DAY * number for number in range(count))
        ]
        return [days[begin : begin + _DAYS_PER_WEEK] for begin in range(0, count, _DAYS_PER_WEEK)]


def _build_entries(
    day: date, time_zone: ZoneInfo, shifts: Sequence[OnCallShift]
) -> tuple[CalendarEntry, ...]:
    start, end = _get_midnight(day, time_zone), _get_midnight(day + _DAY, time_zone)
    return tuple(
        CalendarEntry(
            start=_format_clock_time(shift.starts_at, time_zone) if shift.starts_at > start else "",
            end=_format_clock_time(shift.ends_at, time_zone) if shift.ends_at < end else "",
            people=shift.users,
            is_changed=any(each.source != DutySource.ROTATION for each in shift.on_call),
        )
        for shift in shifts
        if shift.starts_at < end and shift.ends_at > start
    )


def _format_clock_time(moment: datetime, time_zone: ZoneInfo) -> str:
    return f"{moment.astimezone(time_zone):%H:%M}"


def _get_midnight(day: date, time_zone: ZoneInfo) -> datetime:
    return convert_to_utc(datetime.combine(day, time()), time_zone)


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


def list_swappable_turns(schedule: OnCallSchedule) -> Sequence[OnCallTurn]:
    """Return the current and upcoming turns that can be swapped."""
    moment = get_current_time()
    # The period starts at midnight, so that a submitted form offers the same turns as the form
    # that was shown.
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    within = Period(today - MAX_TURN_LOOKBACK, today + _SWAP_PERIOD)
    shown = [
        each
        for each in list_schedule_turns(get_unit_of_work(), schedule.id, within)
        if moment < each.ends_at and not each.may_continue and each.source != DutySource.OVERRIDE
    ]
    return shown[:_MAX_TURNS]


def list_cover_names(schedules: Sequence[OwnSchedule]) -> list[str]:
    """Return the names of other users who can be on call in one of the given schedules."""
    holders = {each.path: each for each in schedules}.values()
    found = {
        name
        for each in holders
        for name in list_eligible_names(get_schedule_owner(get_unit_of_work(), each))
    }
    return sorted(found - {current_user.username}, key=str.lower)


def get_common_zone(schedules: Sequence[OwnSchedule]) -> str:
    """Return the time zone that all schedules share, or the user's time zone if they differ."""
    zones = {each.time_zone for each in schedules}
    return zones.pop() if len(zones) == 1 else get_current_user().time_zone


def parse_grid(arguments: Mapping[str, str], schedule: OnCallSchedule) -> CalendarGrid:
    """Return the requested part of the calendar. The default is the current and the next week."""
    view = get_choice(arguments, "view", [each.value for each in CalendarView], CalendarView.WEEKS)
    text = arguments.get("day", "")
    try:
        day = (
            date.fromisoformat(text)
            if text
            else get_current_time().astimezone(get_zone(schedule.time_zone)).date()
        )
    except ValueError as error:
        raise QueryError("`day` must be a date such as 2027-05-31.", field="day") from error
    if not FIRST_CALENDAR_DAY <= day <= LAST_CALENDAR_DAY:
        raise QueryError(
            f"`day` must be between {FIRST_CALENDAR_DAY} and {LAST_CALENDAR_DAY}.", field="day"
        )
    return CalendarGrid.containing_day(day, CalendarView(view), schedule.time_zone)


def _list_shown_shifts(schedule: OnCallSchedule, grid: CalendarGrid) -> Sequence[OnCallShift]:
    """Return the shifts that the calendar shows.

    The time before the first rotation is not shown as a gap.
    """
    within = Period(max(grid.period.start, schedule.created_at), grid.period.end)
    found = list_schedule_shifts(get_unit_of_work(), schedule.id, within)
    begins_late = bool(found) and found[0].is_gap and found[0].starts_at == schedule.created_at
    return found[1:] if begins_late and found[0].ends_at <= get_current_time() else found


def render_schedule_page(
    holder: ProjectOrGroup, schedule: OnCallSchedule, grid: CalendarGrid
) -> ResponseReturnValue:
    """Render the page of a schedule."""
    session, moment, work = db.session(), get_current_time(), get_unit_of_work()
    target, able = Target(TargetKind.SCHEDULE, schedule.id), set(list_eligible_names(holder))
    shifts = _list_shown_shifts(schedule, grid)
    users = {user.id: user for each in schedule.rotations for user in each.users}
    return render_template(
        "on_call/schedule.html",
        holder=holder,
        schedule=schedule,
        schedules=build_schedules_on_call(work, [schedule]),
        grid=grid,
        weeks=grid.build_weeks(shifts, now=moment),
        policies=find_policies_that_page(target, holder, session=session),
        rules=find_dependent_rules([schedule.id], holder, session=session),
        balance=compute_balance(shifts, grid.period),
        gaps=[each for each in shifts if each.is_gap and each.ends_at > moment],
        absent=[each for each in users.values() if each.username not in able],
        overrides=list_upcoming_overrides(work, holder, schedule.id),
        swaps=list_upcoming_swaps(work, holder, schedule.id),
        notes=list_latest_handoff_notes(work, holder, schedule.id),
        feed=find_feed(schedule.id, current_user.id, session=session, now=get_current_time()),
    )
