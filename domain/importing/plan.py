"""What an export comes to: people, schedules, policies and integrations, and what is left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.alerts.formats.base import Format
from domain.on_call.handovers import Cadence
from domain.on_call.restrictions import Restriction


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
