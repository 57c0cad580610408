"""Schedules of Opsgenie, their rotations and overrides."""

from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator

from domain.errors import InvalidError
from domain.importing.entities import Entity, Text
from domain.importing.plan import (
    ImportedOverride,
    ImportedRotation,
    ImportedSchedule,
    LeftOut,
)
from domain.importing.week_times import merged, since_monday, week_time
from domain.on_call.handovers import Cadence, Unit
from domain.on_call.restrictions import Restriction
from domain.time_zones import check_zone, zone

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"hourly": Unit.HOURS, "daily": Unit.DAYS, "weekly": Unit.WEEKS}
_WEEK = timedelta(weeks=1)


def _moment(value: Any) -> Any:
    """Return a time that the backup wrote as text, or as milliseconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000, UTC) if abs(value) < 10**14 else value
    return value


_Moment = Annotated[datetime, BeforeValidator(_moment)]


class Reference(Entity):
    """Something that another entity names."""

    type: Text = ""
    id: Text = ""
    name: Text = ""
    username: Text = ""

    @property
    def shown(self) -> str:
        """Return its name, or its id."""
        return self.username or self.name or self.id


class _WeekTime(Entity):
    startDay: Text = ""
    endDay: Text = ""
    startHour: int = 0
    startMin: int = 0
    endHour: int = 0
    endMin: int = 0


class _TimeRestriction(Entity):
    type: Text = ""
    restriction: _WeekTime | None = None
    restrictions: tuple[_WeekTime, ...] | None = None


class _Rotation(Entity):
    name: Text = ""
    type: Text
    length: int | None = 1
    startDate: _Moment
    endDate: _Moment | None = None
    participants: tuple[Reference, ...] | None = None
    timeRestriction: _TimeRestriction | None = None


class _Override(Entity):
    user: Reference | None = None
    startDate: _Moment
    endDate: _Moment
    rotations: tuple[Reference, ...] | None = None


class _Schedule(Entity):
    id: Text
    name: Text
    description: Text = ""
    timezone: Text = ""
    enabled: bool | None = True
    ownerTeam: Reference | None = None
    rotations: tuple[_Rotation, ...] | None = None


class ScheduleFile(Entity):
    """A file of the folder `schedules`."""

    schedule: _Schedule
    scheduleOverrideList: tuple[_Override, ...] | None = None


def schedule_of(file: ScheduleFile, left_out: list[LeftOut], *, now: datetime) -> ImportedSchedule:
    """Return a schedule with what of it can be taken over."""
    found, notes = file.schedule, list[str]()
    place = _zone(found.timezone, notes)
    rotations = []
    for number, each in enumerate(found.rotations or (), 1):
        name = each.name or f"Rotation {number}"
        try:
            rotations.append(_rotation(each, name, place, notes, now))
        except (InvalidError, ValueError, OverflowError) as error:
            left_out.append(
                LeftOut(kind="rotation", name=f"{found.name}: {name}", reason=str(error))
            )
    if found.enabled is False:
        notes.append("It was disabled; here it is active.")
    return ImportedSchedule(
        key=found.id,
        team=found.ownerTeam.id if found.ownerTeam else None,
        name=found.name,
        description=found.description,
        time_zone=place,
        rotations=tuple(rotations),
        overrides=tuple(_overrides(file, notes, now)),
        notes=tuple(notes),
    )


def _zone(name: str, notes: list[str]) -> str:
    try:
        return check_zone(name or "UTC")
    except InvalidError:
        notes.append(f"The time zone {name[:50]} is unknown, so UTC is used.")
        return "UTC"


def _rotation(
    found: _Rotation, name: str, place: str, notes: list[str], now: datetime
) -> ImportedRotation:
    unit = _UNITS.get(found.type)
    if unit is None:
        raise InvalidError(f"There are no rotations of the type {found.type or '(none)'}.")
    if found.endDate is not None and _aware(found.endDate, place) <= now:
        raise InvalidError("It is over.")
    if found.endDate is not None:
        notes.append(f"{name} ends on {found.endDate:%Y-%m-%d}; here it continues: remove it then.")
    starts_at = _aware(found.startDate, place).astimezone(zone(place)).replace(tzinfo=None)
    at = starts_at.time().replace(second=0, microsecond=0)
    return ImportedRotation(
        name=name,
        users=_participants(found, name, notes),
        cadence=Cadence(unit=unit, every=found.length or 1, at=at, weekdays=(starts_at.weekday(),)),
        # All rotations of a schedule are on call at the same time.
        layer=1,
        starts_at=starts_at,
        restrictions=_restrictions(found.timeRestriction),
    )


def _aware(moment: datetime, place: str) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(place))


def _participants(found: _Rotation, name: str, notes: list[str]) -> tuple[str, ...]:
    users = []
    for each in found.participants or ():
        if each.type in {"user", ""}:
            users.append(each.id)
        elif each.type == "none":
            raise InvalidError("It has turns without a user, which rotations here cannot have.")
        else:
            notes.append(f"{name}: the {each.type} {each.shown} has no turn here.")
    if not users:
        raise InvalidError("None of its turns is a user's.")
    return tuple(users)


def _restrictions(found: _TimeRestriction | None) -> tuple[Restriction, ...]:
    if found is None:
        return ()
    if found.type == "time-of-day" and found.restriction is not None:
        start, end = _clock(found.restriction)
        return (Restriction(start=start, end=end),)
    return merged(part for each in found.restrictions or () for part in _week_parts(each))


def _week_parts(found: _WeekTime) -> tuple[Restriction, ...]:
    try:
        days = _DAYS.index(found.startDay.lower()), _DAYS.index(found.endDay.lower())
    except ValueError as error:
        raise InvalidError("A restriction is not of weekdays.") from error
    start, end = (since_monday(day, at) for day, at in zip(days, _clock(found), strict=True))
    return week_time(start, (end - start) % _WEEK or _WEEK)


def _clock(found: _WeekTime) -> tuple[time, time]:
    try:
        return time(found.startHour % 24, found.startMin), time(found.endHour % 24, found.endMin)
    except ValueError as error:
        raise InvalidError("A restriction has an hour or a minute that no day has.") from error


def _overrides(file: ScheduleFile, notes: list[str], now: datetime) -> list[ImportedOverride]:
    place, taken = _zone(file.schedule.timezone, []), []
    for each in file.scheduleOverrideList or ():
        start, end = _aware(each.startDate, place), _aware(each.endDate, place)
        if end <= now:
            continue
        if each.user is None or each.user.type not in {"user", ""}:
            notes.append(
                f"The override from {start:%Y-%m-%d %H:%M} is not for a user, so it is left out."
            )
            continue
        if each.rotations:
            notes.append(f"The override from {start:%Y-%m-%d %H:%M} replaces all rotations here.")
        taken.append(ImportedOverride(user=each.user.id, starts_at=start, ends_at=end))
    return taken
