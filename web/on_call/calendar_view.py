"""The days of a month or of two weeks, each with who is on call, for the page of a schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from domain.accounts.references import UserReference
from domain.on_call.final_schedule import Source
from domain.on_call.restrictions import Period
from domain.on_call.types import OnCallShift
from domain.time_zones import instant, zone

_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_DAYS_OF_A_WEEK = 7
#: Days that a calendar can be asked for.
FIRST, LAST = date(2000, 2, 1), date(2099, 11, 1)
#: So many people have a colour of their own.
COLOURS = 6


class CalendarView(StrEnum):
    """What a calendar shows at once."""

    WEEKS = "weeks"
    MONTH = "month"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A part of a day in which the same users are on call."""

    #: By the wall clock; empty at the edges of the day.
    start: str
    end: str
    people: tuple[UserReference, ...]
    #: Whether an override or a swap put them there.
    is_changed: bool

    @property
    def colour(self) -> int | None:
        """Return the number of the colour of the first user; None in a gap."""
        return self.people[0].id % COLOURS if self.people else None


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day of a calendar."""

    day: date
    is_today: bool
    #: Whether it belongs to the month that is shown.
    is_inside: bool
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The days to show, in whole weeks from Monday."""

    view: CalendarView
    #: A day within what is shown.
    day: date
    title: str
    first: date
    last: date
    time_zone: str

    @classmethod
    def around(cls, day: date, view: CalendarView, time_zone: str) -> "Grid":
        """Return the grid that holds a day."""
        monday = day - timedelta(days=day.weekday())
        if view is CalendarView.WEEKS:
            last = monday + 2 * _WEEK - _DAY
            title = f"{monday} to {last}"
            return cls(
                view=view, day=day, title=title, first=monday, last=last, time_zone=time_zone
            )
        begin = day.replace(day=1)
        end = _next_month(begin) - _DAY
        return cls(
            view=view,
            day=day,
            title=f"{begin:%Y-%m}",
            first=begin - timedelta(days=begin.weekday()),
            last=end + timedelta(days=_DAYS_OF_A_WEEK - 1 - end.weekday()),
            time_zone=time_zone,
        )

    @property
    def period(self) -> Period:
        """Return the time from the first day to the end of the last."""
        place = zone(self.time_zone)
        return Period(_midnight(self.first, place), _midnight(self.last + _DAY, place))

    @property
    def previous(self) -> date:
        """Return a day of the period before."""
        if self.view is CalendarView.WEEKS:
            return max(self.first - 2 * _WEEK, FIRST)
        return max((self.day.replace(day=1) - _DAY).replace(day=1), FIRST)

    @property
    def following(self) -> date:
        """Return a day of the period after."""
        if self.view is CalendarView.WEEKS:
            return min(self.first + 2 * _WEEK, LAST)
        return min(_next_month(self.day.replace(day=1)), LAST)

    def weeks(self, shifts: Sequence[OnCallShift], *, now: datetime) -> list[list[Day]]:
        """Return the days with who is on call, in weeks."""
        place = zone(self.time_zone)
        today = now.astimezone(place).date()
        count = (self.last - self.first).days + 1
        days = [
            Day(
                day=day,
                is_today=day == today,
                is_inside=self.view is CalendarView.WEEKS or day.month == self.day.month,
                entries=_entries(day, place, shifts),
            )
            for day in (self.first + _DAY * number for number in range(count))
        ]
        return [days[begin : begin + _DAYS_OF_A_WEEK] for begin in range(0, count, _DAYS_OF_A_WEEK)]


def _entries(day: date, place: ZoneInfo, shifts: Sequence[OnCallShift]) -> tuple[Entry, ...]:
    start, end = _midnight(day, place), _midnight(day + _DAY, place)
    return tuple(
        Entry(
            start=_clock(shift.starts_at, place) if shift.starts_at > start else "",
            end=_clock(shift.ends_at, place) if shift.ends_at < end else "",
            people=shift.users,
            is_changed=any(each.source != Source.ROTATION for each in shift.on_call),
        )
        for shift in shifts
        if shift.starts_at < end and shift.ends_at > start
    )


def _clock(moment: datetime, place: ZoneInfo) -> str:
    return f"{moment.astimezone(place):%H:%M}"


def _midnight(day: date, place: ZoneInfo) -> datetime:
    return instant(datetime.combine(day, time()), place)


def _next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)
