"""Schedules of Grafana OnCall and their shifts, which recur as in iCalendar (RFC 5545)."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from domain.errors import InvalidError
from domain.importing.entities import Entity, Text, Texts
from domain.importing.plan import (
    ImportedOverride,
    ImportedRotation,
    ImportedSchedule,
    LeftOut,
)
from domain.importing.week_times import daily_time, merged, since_monday, week_time
from domain.on_call.handovers import Cadence, Unit
from domain.on_call.restrictions import EVERY_DAY, Restriction
from domain.time_zones import check_zone, zone

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_UNITS = {"hourly": Unit.HOURS, "daily": Unit.DAYS, "weekly": Unit.WEEKS}
_HOUR, _DAY, _WEEK = timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)
_LENGTHS = {Unit.HOURS: _HOUR, Unit.DAYS: _DAY, Unit.WEEKS: _WEEK}
_HIGHEST_LAYER = 100


def _local(value: Any) -> Any:
    """Return a wall time without zone; the API writes some with a Z."""
    if isinstance(value, str):
        return value.removesuffix("Z")
    return value


_WallTime = Annotated[
    datetime, BeforeValidator(_local), AfterValidator(lambda moment: moment.replace(tzinfo=None))
]
#: In seconds; a century is longer than any shift.
_Seconds = Annotated[int, Field(ge=0, le=3_155_760_000)]


class Shift(Entity):
    """A shift."""

    id: Text
    name: Text = ""
    type: Text
    time_zone: Text = ""
    level: int | None = 0
    start: _WallTime
    duration: _Seconds
    frequency: Text = ""
    interval: int | None = 1
    until: _WallTime | None = None
    week_start: Text = ""
    by_day: Texts = ()
    by_month: tuple[int, ...] | None = None
    by_monthday: tuple[int, ...] | None = None
    users: Texts = ()
    rolling_users: tuple[Texts, ...] | None = None
    start_rotation_from_user_index: int | None = 0


class Schedule(Entity):
    """A schedule."""

    id: Text
    name: Text
    type: Text = ""
    team_id: Text = ""
    time_zone: Text = ""
    ical_url_primary: Text = ""
    ical_url_overrides: Text = ""
    shifts: Texts = ()


def schedule_of(
    found: Schedule, shifts: Mapping[str, Shift], left_out: list[LeftOut], *, now: datetime
) -> ImportedSchedule | None:
    """Return a schedule with the shifts that can be taken over; None if it is a calendar's."""
    if found.type == "ical":
        calendar = found.ical_url_primary[:200]
        reason = f"It follows the calendar at {calendar}: add its rotations manually."
        left_out.append(LeftOut(kind="schedule", name=found.name, reason=reason))
        return None
    notes = list[str]()
    if found.ical_url_overrides:
        notes.append("Its overrides came from a calendar: add current and future ones manually.")
    place = _zone(found.time_zone, notes)
    rotations, overrides = list[ImportedRotation](), list[ImportedOverride]()
    for key in found.shifts:
        shift = shifts.get(key)
        try:
            if shift is not None and shift.type in {"single_event", "override"}:
                overrides += _overrides(shift, place, now)
            else:
                rotations += _rotations(shift, place, notes, now)
        except (InvalidError, ValueError, OverflowError) as error:
            name = f"{found.name}: {shift.name if shift and shift.name else key}"
            left_out.append(LeftOut(kind="rotation", name=name, reason=str(error)))
    return ImportedSchedule(
        key=found.id,
        team=found.team_id or None,
        name=found.name,
        time_zone=place,
        rotations=tuple(rotations),
        overrides=tuple(overrides),
        notes=tuple(notes),
    )


def _zone(name: str, notes: list[str]) -> str:
    try:
        return check_zone(name or "UTC")
    except InvalidError:
        notes.append(f"The time zone {name[:50]} is unknown, so UTC is used.")
        return "UTC"


def _start(shift: Shift, place: str) -> datetime:
    """Return when a shift begins, by the wall clock of its schedule."""
    if not shift.time_zone or shift.time_zone == place:
        return shift.start
    there = shift.start.replace(tzinfo=zone(check_zone(shift.time_zone)))
    return there.astimezone(zone(place)).replace(tzinfo=None)


def _overrides(shift: Shift, place: str, now: datetime) -> Iterator[ImportedOverride]:
    start = _start(shift, place).replace(tzinfo=zone(place))
    end = start.astimezone(UTC) + timedelta(seconds=shift.duration)
    users = [*shift.users, *(one for each in shift.rolling_users or () for one in each)]
    if end <= now:
        return
    if len(users) > 1:
        raise InvalidError("An override has one user here: add one for each user.")
    for user in users:
        yield ImportedOverride(user=user, starts_at=start, ends_at=end)


def _rotations(
    shift: Shift | None, place: str, notes: list[str], now: datetime
) -> Iterator[ImportedRotation]:
    """Yield a rotation for each user of a turn: they are on call together."""
    if shift is None:
        raise InvalidError("The shift is not in the export: add on_call_shifts.")
    unit, length = _checked(shift, place, now)
    start, name = _start(shift, place), shift.name or shift.id
    if shift.time_zone and shift.time_zone != place:
        notes.append(f"{name} was in {shift.time_zone}; here it follows the clocks of {place}.")
    if shift.until is not None:
        notes.append(f"{name} ends on {shift.until:%Y-%m-%d}; here it continues: remove it then.")
    restrictions = _restrictions(shift, unit, start, length)
    turns = _turns(shift)
    for place_in_turn in range(max(map(len, turns))):
        yield ImportedRotation(
            name=name if not place_in_turn else f"{name} ({place_in_turn + 1})",
            users=tuple(turn[place_in_turn % len(turn)] for turn in turns),
            cadence=_cadence(shift, unit, start),
            layer=min(max(shift.level or 0, 0) + 1, _HIGHEST_LAYER),
            starts_at=_beginning(shift, unit, start),
            restrictions=restrictions,
        )


def _checked(shift: Shift, place: str, now: datetime) -> tuple[Unit, timedelta]:
    """Return the unit of the turns and the length of a shift; raise InvalidError."""
    unit, length = _UNITS.get(shift.frequency), timedelta(seconds=shift.duration)
    if shift.until is not None and shift.until.replace(tzinfo=zone(place)) <= now:
        raise InvalidError("It is over.")
    if unit is None or shift.by_month or shift.by_monthday:
        raise InvalidError(
            "Shifts that recur by month, or never, are not imported: add rotations manually."
        )
    if length <= timedelta():
        raise InvalidError("It has no length.")
    turn = _LENGTHS[unit] * (shift.interval or 1)
    has_gaps = length < turn
    if has_gaps and (unit is Unit.HOURS or (shift.interval or 1) > 1):
        raise InvalidError("Shifts with gaps of hours or weeks are not imported.")
    if length > turn:
        raise InvalidError("Its turns overlap.")
    return unit, length


def _turns(shift: Shift) -> list[tuple[str, ...]]:
    if shift.type == "rolling_users":
        turns = [each for each in shift.rolling_users or () if each]
        first = (shift.start_rotation_from_user_index or 0) % max(len(turns), 1)
        turns = turns[first:] + turns[:first]
    else:
        turns = [shift.users] if shift.users else []
    if not turns:
        raise InvalidError("It has no users.")
    return turns


def _restrictions(
    shift: Shift, unit: Unit, start: datetime, length: timedelta
) -> tuple[Restriction, ...]:
    days = tuple(_DAYS.index(each) for each in shift.by_day if each in _DAYS)
    if length == _LENGTHS[unit] * (shift.interval or 1) and not days:
        return ()
    if unit is Unit.WEEKS and not days:
        return merged(week_time(since_monday(start.weekday(), start.time()), length))
    if length > _DAY:
        raise InvalidError("A shift of some weekdays lasts longer than a day: add it manually.")
    return (daily_time(start.time(), length, days or EVERY_DAY),)


def _cadence(shift: Shift, unit: Unit, start: datetime) -> Cadence:
    at = start.time().replace(second=0, microsecond=0)
    return Cadence(
        unit=unit,
        every=shift.interval or 1,
        at=at if not _turns_by_week(shift, unit) else time(),
        weekdays=(_week_start(shift) if _turns_by_week(shift, unit) else start.weekday(),),
    )


def _turns_by_week(shift: Shift, unit: Unit) -> bool:
    """Return whether turns change with the calendar week: shifts of some weekdays do."""
    return unit is Unit.WEEKS and bool(shift.by_day)


def _week_start(shift: Shift) -> int:
    return _DAYS.index(shift.week_start) if shift.week_start in _DAYS else _DAYS.index("SU")


def _beginning(shift: Shift, unit: Unit, start: datetime) -> datetime:
    """Return when the first turn begins."""
    if not _turns_by_week(shift, unit):
        return start
    back = (start.weekday() - _week_start(shift)) % len(_DAYS)
    return (start - timedelta(days=back)).replace(hour=0, minute=0, second=0)
