"""The steps of a policy as values: whom they page, and how long after the round began.

Delays count from the beginning of a round, not from the step before: `0s user:alice` and
`5m schedule:primary` page Alice at once, and whoever is on call in primary five minutes later.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from domain.alerts.matching.conditions import Conditions
from domain.core.durations import length_words, parse_duration
from domain.core.errors import InvalidError
from domain.paging.silences.muting import Mute
from domain.paging.silences.types import MuteKind

MOST_STEPS = 20
MOST_TARGETS = 20
MOST_REPEATS = 9
LONGEST_DELAY = timedelta(days=1)
#: Shorter than a minute, a round that reaches nobody would be gone through without end.
SHORTEST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(days=1)
USUAL_PAUSE = timedelta(minutes=5)
SHORTEST_TIMEOUT = timedelta(minutes=5)
LONGEST_TIMEOUT = timedelta(days=1)
#: A step that is later than this, because no worker ran, moves the steps after it: everybody has
#: as much time to answer as the policy says.
_PUNCTUAL = timedelta(seconds=30)
#: A round that reached nobody is followed by another one: soon at first, later after a quarter of
#: the time that has passed, and always within this.
_SOON = timedelta(minutes=5)
LONGEST_UNREACHED = timedelta(minutes=30)
#: Before the name of a mute.
_MUTE_WORDS = {
    MuteKind.SILENCE: "silence “{}”",
    MuteKind.MAINTENANCE: "maintenance window “{}”",
    MuteKind.FLAPPING: "the alert is flapping, {}",
    MuteKind.REOPENED: "the alert {}",
    MuteKind.INCIDENT: "{}",
}


class TargetKind(StrEnum):
    """Target of an escalation step."""

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
    """Targets that are paged together, or in turn."""

    #: Since the beginning of the round.
    after: timedelta
    targets: tuple[Target, ...]
    #: Whether each new alert pages the next target alone.
    takes_turns: bool = False


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step as people write it: `5m schedule:primary user:bob`."""

    after: timedelta
    targets: tuple[AnyTarget, ...]
    takes_turns: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy does: its steps, and how often they are gone through again."""

    steps: tuple[Step, ...]
    repeats: int = 0
    #: Between the last step and the next round.
    pause: timedelta = USUAL_PAUSE
    #: For how long an acknowledgement holds; None for ever.
    timeout: timedelta | None = None
    #: Whether an alert that was acknowledged below critical is triggered again when it becomes
    #: critical.
    retriggers: bool = True


def asking(user_id: int) -> Step:
    """Return a step that pages one person at once, beside those of a policy."""
    return Step(timedelta(), (Target(TargetKind.USER, user_id),))


def check_plan(plan: Plan) -> None:
    """Raise InvalidError for a plan that a policy cannot have.

    Stored ones are not checked again: nobody may be left without pages over a new limit.
    """
    _check_steps(plan.steps)
    if not 0 <= plan.repeats <= MOST_REPEATS:
        raise InvalidError(f"Steps can be repeated at most {MOST_REPEATS} times.", field="repeats")
    if not SHORTEST_PAUSE <= plan.pause <= LONGEST_PAUSE:
        message = "The pause before a repetition is between 1 minute and 24 hours."
        raise InvalidError(message, field="repeat_pause")
    if plan.timeout is not None and not SHORTEST_TIMEOUT <= plan.timeout <= LONGEST_TIMEOUT:
        message = "An acknowledgement holds for 5 minutes to 24 hours, or without an end."
        raise InvalidError(message, field="acknowledgement_timeout")


def _check_steps(steps: Sequence[Step]) -> None:
    if not 1 <= len(steps) <= MOST_STEPS:
        raise InvalidError(f"A policy has between 1 and {MOST_STEPS} steps.", field="steps")
    if any(earlier.after > later.after for earlier, later in pairwise(steps)):
        message = "Put the steps in order of time: delays count from the start of a round."
        raise InvalidError(message, field="steps")
    for number, step in enumerate(steps, 1):
        if not timedelta() <= step.after <= LONGEST_DELAY:
            raise InvalidError(f"Step {number}: a delay has at most 24 hours.", field="steps")
        if not 1 <= len(step.targets) <= MOST_TARGETS:
            message = f"Step {number}: choose between 1 and {MOST_TARGETS} targets."
            raise InvalidError(message, field="steps")


_KINDS = "|".join(TargetKind)
_IN_TURN = "round-robin"
_NEXT_TARGET = re.compile(rf"[\s,]+(?=(?:{_KINDS}):)")
_TARGET = re.compile(rf"({_KINDS}):\s*(\S.*)", re.DOTALL)


def parse_step(text: str) -> NamedStep:
    """Return a step that is written as `5m schedule:primary user:bob`, or raise InvalidError.

    In one like `5m round-robin user:alice user:bob` the targets take turns.
    """
    first, *targets = _NEXT_TARGET.split(text.strip())
    delay, _, words = first.partition(" ")
    takes_turns = words.strip().lower() == _IN_TURN
    return NamedStep(
        after=parse_duration(delay if takes_turns else first, field="steps"),
        targets=tuple(map(parse_target, targets)),
        takes_turns=takes_turns,
    )


def parse_target(text: str, field: str = "steps") -> NamedTarget:
    """Return a target that is written as `user:alice`, or raise InvalidError."""
    found = _TARGET.fullmatch(text.strip().rstrip(","))
    if found is None:
        message = f"“{text[:50]}” is not a target: write user:NAME, schedule:NAME or channel:NAME."
        raise InvalidError(message, field=field)
    kind = TargetKind(found[1])
    name = found[2].strip()
    return NamedTarget(kind, name.removeprefix("@") if kind is TargetKind.USER else name)


def stored_steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps as they are stored."""
    return [
        {
            "after": int(step.after.total_seconds()),
            "targets": [[each.kind.value, each.id] for each in step.targets],
            **({"round_robin": True} if step.takes_turns else {}),
        }
        for step in steps
    ]


def read_steps(stored: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Return stored steps."""
    return tuple(
        Step(
            after=timedelta(seconds=each["after"]),
            targets=tuple(Target(TargetKind(kind), number) for kind, number in each["targets"]),
            takes_turns=each.get("round_robin", False),
        )
        for each in stored
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an escalation has come."""

    #: From 1.
    round: int
    #: The index of the next step, from 0; the number of steps if all of the round were taken.
    step: int
    #: When the round began, from which delays count.
    began_at: datetime


def beginning(now: datetime) -> Progress:
    """Return the progress of an escalation that begins."""
    return Progress(round=1, step=0, began_at=now)


def next_due(plan: Plan, progress: Progress) -> datetime | None:
    """Return when the next step is due; None if all steps of the round were taken."""
    if progress.step >= len(plan.steps):
        return None
    return progress.began_at + plan.steps[progress.step].after


def after_step(plan: Plan, progress: Progress, *, now: datetime) -> Progress:
    """Return the progress after the next step was taken, which may have been late."""
    after = plan.steps[progress.step].after
    late = now - (progress.began_at + after)
    began_at = now - after if late > _PUNCTUAL else progress.began_at
    return Progress(round=progress.round, step=progress.step + 1, began_at=began_at)


def after_failure(plan: Plan, progress: Progress, *, now: datetime) -> Progress:
    """Return the progress after a step that reached nobody: the one after it is due at once."""
    due = next_due(plan, progress)
    if due is None or due <= now:
        return progress
    return replace(progress, began_at=now - plan.steps[progress.step].after)


def after_round(plan: Plan, progress: Progress, *, now: datetime) -> Progress | None:
    """Return the progress after a round that reached somebody; None if it was the last one."""
    if progress.round > plan.repeats:
        return None
    return Progress(round=progress.round + 1, step=0, began_at=now + plan.pause)


def after_unreached_round(
    plan: Plan, progress: Progress, *, started_at: datetime, now: datetime
) -> Progress:
    """Return the progress after a round that reached nobody, of an escalation that began then."""
    passed = max(now - started_at, timedelta())
    pause = min(max(min(plan.pause, _SOON), passed / 4), LONGEST_UNREACHED)
    return Progress(round=progress.round + 1, step=0, began_at=now + pause)


def shifted(progress: Progress, length: timedelta) -> Progress:
    """Return the progress as if it had come so much later, or earlier."""
    return replace(progress, began_at=progress.began_at + length)


def target_words(kind: TargetKind, name: str | None) -> str:
    """Return whom a target pages; without a name it was deleted."""
    if name is None:
        return f"a deleted {kind}"
    if kind is TargetKind.USER:
        return f"@{name}"
    return f"the people on call in {name}" if kind is TargetKind.SCHEDULE else f"channel {name}"


def step_words(after: timedelta, targets: Sequence[str], *, takes_turns: bool = False) -> str:
    """Return a step as a sentence."""
    when = f"After {length_words(after)}" if after else "Immediately"
    how = ", one after the other, a new alert each" if takes_turns else ""
    return f"{when}{how}: {listed(targets)}."


def repeat_words(repeats: int, pause: timedelta) -> str:
    """Return how often the steps are repeated, as a sentence."""
    if not repeats:
        return "No repeats."
    times = "once" if repeats == 1 else f"{repeats} times"
    return f"Repeats {times}, {length_words(pause)} after the last step."


def timeout_words(timeout: timedelta) -> str:
    """Return for how long an acknowledgement holds, as a sentence."""
    return f"An acknowledgement holds for {length_words(timeout)}."


RETRIGGERS_NEVER = "An acknowledged alert that becomes critical stays acknowledged."


def listed(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    *first, last = parts or ("nobody",)
    return f"{', '.join(first)} and {last}" if first else last


def conditions_words(conditions: Conditions) -> str:
    """Return which alerts meet conditions, as the subject of a sentence."""
    severities = f"{_either(conditions.severities)} alerts" if conditions.severities else "Alerts"
    parts = [severities[0].upper() + severities[1:]]
    if conditions.environments:
        parts.append(f"of environment {_either(conditions.environments)}")
    if conditions.services:
        parts.append(f"of service {_either(conditions.services)}")
    if conditions.labels:
        parts.append(f"with {conditions.labels_text}")
    return " ".join(parts) if len(parts) > 1 or conditions.severities else "All alerts"


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def mute_words(mute: Mute) -> str:
    """Return why an alert is muted, as a part of a sentence."""
    return _MUTE_WORDS[mute.kind].format(mute.name.rstrip("."))
