"""The steps of a policy as values: whom they page, and how long after the round began.

Delays count from the beginning of a round, not from the step before: `0s user:alice` and
`5m schedule:primary` page Alice at once, and whoever is on call in primary five minutes later.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from domain.durations import parse_duration
from domain.errors import InvalidError

MOST_STEPS = 20
MOST_TARGETS = 20
MOST_REPEATS = 9
LONGEST_DELAY = timedelta(days=1)
#: Shorter than a minute, a round that reaches nobody would be gone through without end.
SHORTEST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(days=1)
USUAL_PAUSE = timedelta(minutes=5)


class TargetKind(StrEnum):
    """Whom a step pages."""

    USER = "user"
    #: Whoever is on call when the step is due.
    SCHEDULE = "schedule"
    #: A contact of the project, such as a chat room.
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Target:
    """A user, schedule or channel by its id."""

    kind: TargetKind
    id: int


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A user, schedule or channel by its name, as people write it: `user:alice`."""

    kind: TargetKind
    name: str


AnyTarget = Target | NamedTarget


@dataclass(frozen=True, slots=True)
class Step:
    """Targets that are paged together."""

    #: Since the beginning of the round.
    after: timedelta
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step as people write it: `5m schedule:primary user:bob`."""

    after: timedelta
    targets: tuple[AnyTarget, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy does: its steps, and how often they are gone through again."""

    steps: tuple[Step, ...]
    repeats: int = 0
    #: Between the last step and the next round.
    pause: timedelta = USUAL_PAUSE


def check_plan(plan: Plan) -> None:
    """Raise InvalidError for a plan that a policy cannot have.

    Stored ones are not checked again: nobody may be left without pages over a new limit.
    """
    _check_steps(plan.steps)
    if not 0 <= plan.repeats <= MOST_REPEATS:
        message = f"Steps can be repeated at most {MOST_REPEATS} times."
        raise InvalidError(message, field="repeats")
    if not SHORTEST_PAUSE <= plan.pause <= LONGEST_PAUSE:
        message = "The pause before a repetition is between 1 minute and 24 hours."
        raise InvalidError(message, field="repeat_pause")


def _check_steps(steps: Sequence[Step]) -> None:
    if not 1 <= len(steps) <= MOST_STEPS:
        message = f"A policy has between 1 and {MOST_STEPS} steps."
        raise InvalidError(message, field="steps")
    if any(earlier.after > later.after for earlier, later in pairwise(steps)):
        message = "Put the steps in order of time: delays count from the start of a round."
        raise InvalidError(message, field="steps")
    for number, step in enumerate(steps, 1):
        if not timedelta() <= step.after <= LONGEST_DELAY:
            message = f"Step {number}: a delay has at most 24 hours."
            raise InvalidError(message, field="steps")
        if not 1 <= len(step.targets) <= MOST_TARGETS:
            message = f"Step {number}: choose between 1 and {MOST_TARGETS} targets."
            raise InvalidError(message, field="steps")


_KINDS = "|".join(TargetKind)
_NEXT_TARGET = re.compile(rf"[\s,]+(?=(?:{_KINDS}):)")
_TARGET = re.compile(rf"({_KINDS}):\s*(\S.*)", re.DOTALL)


def parse_step(text: str) -> NamedStep:
    """Return a step that is written as `5m schedule:primary user:bob`, or raise InvalidError."""
    delay, *targets = _NEXT_TARGET.split(text.strip())
    return NamedStep(
        after=parse_duration(delay, field="steps"),
        targets=tuple(map(parse_target, targets)),
    )


def parse_target(text: str) -> NamedTarget:
    """Return a target that is written as `user:alice`, or raise InvalidError."""
    found = _TARGET.fullmatch(text.strip().rstrip(","))
    if found is None:
        message = f"“{text[:50]}” is not a target: write user:NAME, schedule:NAME or channel:NAME."
        raise InvalidError(message, field="steps")
    kind = TargetKind(found[1])
    name = found[2].strip()
    return NamedTarget(kind, name.removeprefix("@") if kind is TargetKind.USER else name)


def stored_steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps as they are stored."""
    return [
        {
            "after": int(step.after.total_seconds()),
            "targets": [[each.kind.value, each.id] for each in step.targets],
        }
        for step in steps
    ]


def read_steps(stored: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Return stored steps."""
    return tuple(
        Step(
            after=timedelta(seconds=each["after"]),
            targets=tuple(Target(TargetKind(kind), number) for kind, number in each["targets"]),
        )
        for each in stored
    )
