"""What an export comes to: people, schedules, policies and integrations, and what is left out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

from domain.alerts.formats.base import Format
from domain.core.errors import InvalidError
from domain.core.time_zones import check_zone
from domain.paging.on_call.schedule_values import Cadence, Restriction

_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Something that cannot be taken over, and why."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ImportedUser:
    """A person of the other tool."""

    key: str
    username: str
    email: str
    name: str


@dataclass(frozen=True, kw_only=True)
class ImportedRotation:
    """A rotation, whose people are named by their keys."""

    name: str
    users: tuple[str, ...]
    cadence: Cadence
    layer: int
    #: By the wall clock of the schedule.
    starts_at: datetime
    restrictions: tuple[Restriction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedOverride:
    """A time in which one person is on call instead of everybody else."""

    user: str
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class ImportedSchedule:
    """A schedule; notes say in what it differs from the one of the other tool."""

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
    """A step of a policy: keys of users and of schedules."""

    after: timedelta
    users: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    #: Whether each new alert pages the next user alone.
    takes_turns: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportedPolicy:
    """An escalation policy."""

    key: str
    team: str | None
    name: str
    steps: tuple[ImportedStep, ...]
    repeats: int = 0
    pause: timedelta | None = None
    #: Whether alerts went to it that no rule was about.
    is_default: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedIntegration:
    """A source of alerts."""

    team: str | None
    name: str
    type: Format
    is_active: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportPlan:
    """Everything of an export."""

    #: Names of teams by key.
    teams: dict[str, str] = field(default_factory=dict)
    users: Sequence[ImportedUser] = ()
    schedules: Sequence[ImportedSchedule] = ()
    policies: Sequence[ImportedPolicy] = ()
    integrations: Sequence[ImportedIntegration] = ()
    left_out: Sequence[LeftOut] = ()


def known_zone(name: str, notes: list[str]) -> str:
    """Return a time zone, or UTC for one that is unknown, and note that."""
    try:
        return check_zone(name or "UTC")
    except InvalidError:
        notes.append(f"The time zone {name[:50]} is unknown, so UTC is used.")
        return "UTC"


def week_time(start: timedelta, length: timedelta) -> tuple[Restriction, ...]:
    """Return a time that begins so long after Monday 00:00, in parts of at most a day.

    A whole week, or more, is no restriction.
    """
    if length >= _WEEK:
        return ()
    parts: list[Restriction] = []
    position, end = start % _WEEK, start % _WEEK + length
    while position < end:
        day, begins = divmod(position, _DAY)
        # At midnight, or a day later at the same time if that ends it.
        until = min(end, (day + 1) * _DAY)
        parts.append(
            Restriction(start=_clock(begins), end=_clock(until % _DAY), weekdays=(day % 7,))
        )
        position = until
    return tuple(parts)


def daily_time(start: time, length: timedelta, weekdays: tuple[int, ...]) -> Restriction:
    """Return a time of some days that lasts at most a day."""
    end = _clock((since_monday(0, start) + length) % _DAY)
    return Restriction(start=start, end=end, weekdays=weekdays)


def since_monday(weekday: int, at: time) -> timedelta:
    """Return how long after Monday 00:00 a time of the week is."""
    return timedelta(days=weekday, hours=at.hour, minutes=at.minute, seconds=at.second)


def _clock(after_midnight: timedelta) -> time:
    minutes, seconds = divmod(int(after_midnight.total_seconds()), 60)
    return time(*divmod(minutes, 60), seconds)


def merged(found: Iterable[Restriction]) -> tuple[Restriction, ...]:
    """Return the same times with one restriction for each time of day."""
    days: dict[tuple[time, time], set[int]] = {}
    for each in found:
        days.setdefault((each.start, each.end), set()).update(each.weekdays)
    return tuple(
        Restriction(start=start, end=end, weekdays=tuple(sorted(on)))
        for (start, end), on in days.items()
    )
