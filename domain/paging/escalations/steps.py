"""The steps of a policy as values: their targets and delays.

Delays count from the start of a round, not from the previous step. For example, `0s user:alice` and
`5m schedule:primary` page Alice immediately, and the users on call in primary five minutes later.
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
#: Shortest pause between rounds. It prevents a round that reaches nobody from looping.
SHORTEST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(days=1)
USUAL_PAUSE = timedelta(minutes=5)
SHORTEST_TIMEOUT = timedelta(minutes=5)
LONGEST_TIMEOUT = timedelta(days=1)
#: Tolerance for late steps. If a step is later because no worker ran, the following steps move too.
#: Users then have the full time to respond.
_PUNCTUAL = timedelta(seconds=30)
#: Bounds of the pause after a round that reached nobody. The pause is a quarter of the elapsed
#: time. It is at least five minutes, or the pause of the plan if that is shorter.
_SOON = timedelta(minutes=5)
LONGEST_UNREACHED = timedelta(minutes=30)
#: Phrases for the reasons of mutes; `{}` is the name.
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
    #: The users who are on call when the step is due.
    SCHEDULE = "schedule"
    #: A contact of a project or group, such as a chat room.
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Target:
    """A user, schedule or channel by its id."""

    kind: TargetKind
    id: int


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A user, schedule or channel by its name, as users write it: `user:alice`."""

    kind: TargetKind
    name: str


AnyTarget = Target | NamedTarget


@dataclass(frozen=True, slots=True)
class Step:
    """Targets that are paged together or in rotation."""

    #: Delay of the step, counted from the start of the round.
    after: timedelta
    targets: tuple[Target, ...]
    #: True if each new alert pages only the next target.
    takes_turns: bool = False


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step as users write it: `5m schedule:primary user:bob`."""

    after: timedelta
    targets: tuple[AnyTarget, ...]
    takes_turns: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a policy and how often they repeat."""

    steps: tuple[Step, ...]
    repeats: int = 0
    #: Pause between the last step and the next round.
    pause: timedelta = USUAL_PAUSE
    #: Time for which an acknowledgement is valid. None if it does not expire.
    timeout: timedelta | None = None
    #: True if an alert that was acknowledged below critical is triggered again when it becomes
    #: critical.
    retriggers: bool = True


def asking(user_id: int) -> Step:
    """Return an additional step that pages a user immediately."""
    return Step(timedelta(), (Target(TargetKind.USER, user_id),))


def check_plan(plan: Plan) -> None:
    """Raise InvalidError if a policy cannot have this plan.

    Stored plans are not checked again, since a new limit must not stop existing policies.
    """
    _check_steps(plan.steps)
    if not 0 <= plan.repeats <= MOST_REPEATS:
        raise InvalidError(f"Steps can be repeated at most {MOST_REPEATS} times.", field="repeats")
    if not SHORTEST_PAUSE <= plan.pause <= LONGEST_PAUSE:
        message = "The pause before a repetition must be between 1 minute and 24 hours."
        raise InvalidError(message, field="repeat_pause")
    if plan.timeout is not None and not SHORTEST_TIMEOUT <= plan.timeout <= LONGEST_TIMEOUT:
        message = "The acknowledgement timeout must be between 5 minutes and 24 hours."
        raise InvalidError(message, field="acknowledgement_timeout")


def _check_steps(steps: Sequence[Step]) -> None:
    if not 1 <= len(steps) <= MOST_STEPS:
        raise InvalidError(f"A policy must have between 1 and {MOST_STEPS} steps.", field="steps")
    if any(earlier.after > later.after for earlier, later in pairwise(steps)):
        message = "Sort the steps by delay. Delays are counted from the start of a round."
        raise InvalidError(message, field="steps")
    for number, step in enumerate(steps, 1):
        if not timedelta() <= step.after <= LONGEST_DELAY:
            message = f"Step {number}: the delay can be at most 24 hours."
            raise InvalidError(message, field="steps")
        if not 1 <= len(step.targets) <= MOST_TARGETS:
            message = f"Step {number}: choose between 1 and {MOST_TARGETS} targets."
            raise InvalidError(message, field="steps")


_KINDS = "|".join(TargetKind)
_IN_TURN = "round-robin"
_NEXT_TARGET = re.compile(rf"[\s,]+(?=(?:{_KINDS}):)")
_TARGET = re.compile(rf"({_KINDS}):\s*(\S.*)", re.DOTALL)


def parse_step(text: str) -> NamedStep:
    """Return a step that is written as `5m schedule:primary user:bob`.

    In a step such as `5m round-robin user:alice user:bob`, the targets take turns. Raise
    InvalidError if the text is invalid.
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
    """Return a target that is written as `user:alice`.

    Raise InvalidError if the text is invalid.
    """
    found = _TARGET.fullmatch(text.strip().rstrip(","))
    if found is None:
        message = f'"{text[:50]}" is not a target. Use user:NAME, schedule:NAME or channel:NAME.'
        raise InvalidError(message, field=field)
    kind = TargetKind(found[1])
    name = found[2].strip()
    return NamedTarget(kind, name.removeprefix("@") if kind is TargetKind.USER else name)


def stored_steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps in their stored format."""
    return [
        {
            "after": int(step.after.total_seconds()),
            "targets": [[each.kind.value, each.id] for each in step.targets],
            **({"round_robin": True} if step.takes_turns else {}),
        }
        for step in steps
    ]


def read_steps(stored: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Return steps from their stored format."""
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
    """The progress of an escalation."""

    #: Number of the round, starting at 1.
    round: int
    #: Index of the next step, starting at 0. It is the number of steps if all steps were taken.
    step: int
    #: Start of the round, from which delays count.
    began_at: datetime


def beginning(now: datetime) -> Progress:
    """Return the progress of a new escalation."""
    return Progress(round=1, step=0, began_at=now)


def next_due(plan: Plan, progress: Progress) -> datetime | None:
    """Return when the next step is due; None if all steps of the round were taken."""
    if progress.step >= len(plan.steps):
        return None
    return progress.began_at + plan.steps[progress.step].after


def after_step(plan: Plan, progress: Progress, *, now: datetime) -> Progress:
    """Return the progress after the next step was taken, possibly late."""
    after = plan.steps[progress.step].after
    late = now - (progress.began_at + after)
    began_at = now - after if late > _PUNCTUAL else progress.began_at
    return Progress(round=progress.round, step=progress.step + 1, began_at=began_at)


def after_failure(plan: Plan, progress: Progress, *, now: datetime) -> Progress:
    """Return the progress after a step reached nobody; the following step is due immediately."""
    due = next_due(plan, progress)
    if due is None or due <= now:
        return progress
    return replace(progress, began_at=now - plan.steps[progress.step].after)


def after_round(plan: Plan, progress: Progress, *, now: datetime) -> Progress | None:
    """Return the progress after a round that reached anyone; None if it was the last round."""
    if progress.round > plan.repeats:
        return None
    return Progress(round=progress.round + 1, step=0, began_at=now + plan.pause)


def after_unreached_round(
    plan: Plan, progress: Progress, *, started_at: datetime, now: datetime
) -> Progress:
    """Return the progress after a round that reached nobody.

    `started_at` is the start of the escalation.
    """
    passed = max(now - started_at, timedelta())
    pause = min(max(min(plan.pause, _SOON), passed / 4), LONGEST_UNREACHED)
    return Progress(round=progress.round + 1, step=0, began_at=now + pause)


def shifted(progress: Progress, length: timedelta) -> Progress:
    """Return the progress moved by a length of time, which may be negative."""
    return replace(progress, began_at=progress.began_at + length)


def target_words(kind: TargetKind, name: str | None) -> str:
    """Return the recipients of a target in words; the name is None if the target was deleted."""
    if name is None:
        return f"a deleted {kind}"
    if kind is TargetKind.USER:
        return f"@{name}"
    return f"the people on call in {name}" if kind is TargetKind.SCHEDULE else f"channel {name}"


def step_words(after: timedelta, targets: Sequence[str], *, takes_turns: bool = False) -> str:
    """Return a step as a sentence."""
    when = f"After {length_words(after)}" if after else "Immediately"
    how = ", round-robin" if takes_turns else ""
    return f"{when}{how}: {listed(targets)}."


def repeat_words(repeats: int, pause: timedelta) -> str:
    """Return the number of repeats as a sentence."""
    if not repeats:
        return "No repeats."
    times = "once" if repeats == 1 else f"{repeats} times"
    return f"Repeats {times}, {length_words(pause)} after the last step."


def timeout_words(timeout: timedelta) -> str:
    """Return the time for which an acknowledgement is valid, as a sentence."""
    return f"Acknowledgements expire after {length_words(timeout)}."


RETRIGGERS_NEVER = "An acknowledged alert that becomes critical stays acknowledged."


def listed(parts: Sequence[str]) -> str:
    """Return the parts as a list in words: `a, b and c`."""
    *first, last = parts or ("nobody",)
    return f"{', '.join(first)} and {last}" if first else last


def conditions_words(conditions: Conditions) -> str:
    """Return the alerts that meet conditions as the subject of a sentence."""
    severities = f"{_either(conditions.severities)} alerts" if conditions.severities else "Alerts"
    parts = [severities[0].upper() + severities[1:]]
    if conditions.environments:
        parts.append(f"in environment {_either(conditions.environments)}")
    if conditions.services:
        parts.append(f"for service {_either(conditions.services)}")
    if conditions.labels:
        parts.append(f"with {conditions.labels_text}")
    return " ".join(parts) if len(parts) > 1 or conditions.severities else "All alerts"


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def mute_words(mute: Mute) -> str:
    """Return the reason why an alert is muted as part of a sentence."""
    return _MUTE_WORDS[mute.kind].format(mute.name.rstrip("."))
