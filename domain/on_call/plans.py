"""A schedule as values: what decides who is on call, without a database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType

from domain.on_call.handovers import Cadence, Handovers
from domain.on_call.restrictions import Period, Restriction


@dataclass(frozen=True, kw_only=True)
class RotationPlan:
    """A rotation as it was during a time: a change of it begins a new one."""

    id: int
    name: str
    #: Those of the highest layer in which somebody is on call are; a layer can have several.
    layer: int
    cadence: Cadence
    starts_on: date
    time_zone: str
    #: Users in the order of their turns.
    user_ids: tuple[int, ...]
    #: The place of the user who has turn 0.
    first_turn: int = 0
    restrictions: tuple[Restriction, ...] = ()
    valid_from: datetime
    #: None while it is in force.
    valid_until: datetime | None = None

    @property
    def handovers(self) -> Handovers:
        """Return its hand-overs."""
        return Handovers(self.cadence, self.starts_on, self.time_zone)

    def user_at(self, turn: int) -> int:
        """Return the user who has a turn."""
        return self.user_ids[(turn + self.first_turn) % len(self.user_ids)]


@dataclass(frozen=True, kw_only=True)
class Override:
    """A user who is on call instead of everybody else."""

    id: int
    user_id: int
    during: Period


@dataclass(frozen=True, kw_only=True)
class Stint:
    """A time of a user."""

    user_id: int
    during: Period


@dataclass(frozen=True, kw_only=True)
class Swap:
    """Two times of two users, each of whom takes the other's."""

    id: int
    first: Stint
    second: Stint


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that decides who is on call in a schedule."""

    schedule_id: int
    rotations: tuple[RotationPlan, ...] = ()
    #: In the order in which they were made, as swaps are.
    overrides: tuple[Override, ...] = ()
    swaps: tuple[Swap, ...] = ()
    #: Until when users can be on call: not after they lose their role or their account. A user
    #: without a time can be at any.
    ends: Mapping[int, datetime] = field(default_factory=lambda: MappingProxyType({}))

    def has(self, user_id: int, moment: datetime) -> bool:
        """Return whether a user can be on call at a moment."""
        end = self.ends.get(user_id)
        return end is None or moment < end
