"""Import plans: users, schedules, policies and integrations to create, and skipped entities."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

from domain.alerts.formats.base import AlertFormat
from domain.core.errors import InvalidError
from domain.core.time_zones import normalize_zone_name
from domain.paging.on_call.schedule_plans import Cadence, Restriction

_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)


@dataclass(frozen=True, kw_only=True)
class SkippedEntity:
    """An entity that cannot be imported, with the reason."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ImportedUser:
    """A user of the on-call tool that wrote the export."""

    key: str
    username: str
    email: str
    name: str


@dataclass(frozen=True, kw_only=True)
class ImportedRotation:
    """A rotation, with the keys of its users."""

    name: str
    users: tuple[str, ...]
    cadence: Cadence
    layer: int
    #: Start in the time zone of the schedule.
    starts_at: datetime
    restrictions: tuple[Restriction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedOverride:
    """A period in which only one user is on call."""

    user: str
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class ImportedSchedule:
    """A schedule to import.

    `notes` describes differences from the original schedule.
    """

    key: str
    team: str | None
    name: str
    time_zone: str
    description: str = ""
    rotations: tuple[ImportedRotation, ...] = ()
    overrides: tuple[ImportedOverride, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedStep:
    """A step of a policy, with the keys of its users and schedules."""

    after: timedelta
    users: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    #: True if each new alert pages only the next user.
    takes_turns: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportedPolicy:
    """An escalation policy to import.

    `notes` describes differences from the original policy.
    """

    key: str
    team: str | None
    name: str
    steps: tuple[ImportedStep, ...]
    repeats: int = 0
    pause: timedelta | None = None
    #: True if alerts without a matching rule went to this policy.
    is_default: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedIntegration:
    """An integration to import, which receives alerts from a monitoring tool."""

    team: str | None
    name: str
    type: AlertFormat
    is_active: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportPlan:
    """All entities in an export, including entities that cannot be imported."""

    #: Names of teams by key.
    teams: dict[str, str] = field(default_factory=dict)
    users: Sequence[ImportedUser] = ()
    schedules: Sequence[ImportedSchedule] = ()
    policies: Sequence[ImportedPolicy] = ()
    integrations: Sequence[ImportedIntegration] = ()
    left_out: Sequence[SkippedEntity] = ()


def resolve_time_zone(name: str, notes: list[str]) -> str:
    """Normalize the name of a time zone.

    If the time zone is unknown, add a note and return UTC.
    """
    try:
        return normalize_zone_name(name or "UTC")
    except InvalidError:
        notes.append(f"The time zone {name[:50]} is unknown. UTC is used instead.")
        return "UTC"


def build_week_restrictions(start: timedelta, length: timedelta) -> tuple[Restriction, ...]:
    """Return restrictions that cover a period of the week, each at most one day long.

    `start` is the offset from Monday 00:00. A period of a week or more needs no restriction.
    """
    if length >= _WEEK:
        return ()
    parts: list[Restriction] = []
    position, end = start % _WEEK, start % _WEEK + length
    while position < end:
        day, begins = divmod(position, _DAY)
        # A part ends at midnight, or earlier at the end of the period.
        until = min(end, (day + 1) * _DAY)
        parts.append(
            Restriction(
                start=_get_time_of_day(begins),
                end=_get_time_of_day(until % _DAY),
                weekdays=(day % 7,),
            )
        )
        position = until
    return tuple(parts)


def build_daily_restriction(
    start: time, length: timedelta, weekdays: tuple[int, ...]
) -> Restriction:
    """Return a restriction to a daily period on the given days of the week.

    The period is at most one day long.
    """
    end = _get_time_of_day((compute_offset_from_monday(0, start) + length) % _DAY)
    return Restriction(start=start, end=end, weekdays=weekdays)


def compute_offset_from_monday(weekday: int, time_of_day: time) -> timedelta:
    """Return the offset of a time of the week from Monday 00:00."""
    return timedelta(
        days=weekday, hours=time_of_day.hour, minutes=time_of_day.minute, seconds=time_of_day.second
    )


def _get_time_of_day(after_midnight: timedelta) -> time:
    minutes, seconds = divmod(int(after_midnight.total_seconds()), 60)
    return time(*divmod(minutes, 60), seconds)


def merge_restrictions(restrictions: Iterable[Restriction]) -> tuple[Restriction, ...]:
    """Merge restrictions that differ only in their weekdays."""
    days: dict[tuple[time, time], set[int]] = {}
    for each in restrictions:
        days.setdefault((each.start, each.end), set()).update(each.weekdays)
    return tuple(
        Restriction(start=start, end=end, weekdays=tuple(sorted(on)))
        for (start, end), on in days.items()
    )
