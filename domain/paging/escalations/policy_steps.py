"""Steps of escalation policies, with their targets and delays.

Delays are counted from the start of a round, not from the previous step. For example,
`0s user:alice` and `5m schedule:primary` page Alice immediately, and the users on call in the
`primary` schedule five minutes later.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from domain.alerts.matching.conditions import AlertConditions
from domain.core.durations import format_duration_words, parse_duration
from domain.core.errors import InvalidError
from domain.core.word_joining import join_words
from domain.paging.silences.active_mutes import Mute
from domain.paging.silences.types import MuteKind

MAX_STEPS = 20
MAX_TARGETS = 20
MAX_REPEATS = 9
MAX_STEP_DELAY = timedelta(days=1)
#: Minimum pause between rounds. It prevents rounds that reach nobody from repeating in a tight
#: loop.
MIN_REPEAT_PAUSE = timedelta(minutes=1)
MAX_REPEAT_PAUSE = timedelta(days=1)
DEFAULT_REPEAT_PAUSE = timedelta(minutes=5)
MIN_ACKNOWLEDGEMENT_TIMEOUT = timedelta(minutes=5)
MAX_ACKNOWLEDGEMENT_TIMEOUT = timedelta(days=1)
#: Tolerance for late steps. If a step is later than this tolerance, the following steps are delayed
#: too, so that users have the full time to respond.
_LATE_STEP_TOLERANCE = timedelta(seconds=30)
#: Bounds of the pause after a round that reached nobody. The pause is a quarter of the time since
#: the escalation started. It is at least five minutes, or the pause of the plan if the plan has a
#: shorter pause.
_MIN_UNREACHED_PAUSE = timedelta(minutes=5)
MAX_UNREACHED_PAUSE = timedelta(minutes=30)
#: Phrases that describe the reasons for mutes; `{}` is the name of the mute.
_MUTE_PHRASES = {
    MuteKind.SILENCE: "silence “{}”",
    MuteKind.MAINTENANCE: "maintenance window “{}”",
    MuteKind.FLAPPING: "the alert is flapping, {}",
    MuteKind.REOPENED: "the alert {}",
    MuteKind.INCIDENT: "{}",
}


class TargetKind(StrEnum):
    """Kind of target in an escalation step: user, schedule or channel."""

    USER = "user"
    #: The users who are on call when the step is due.
    SCHEDULE = "schedule"
    #: A contact of a project or group, such as a chat room.
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Target:
    """A user, schedule or channel that is identified by its ID."""

    kind: TargetKind
    id: int


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A user, schedule or channel that is identified by its name, such as `user:alice`."""

    kind: TargetKind
    name: str


AnyTarget = Target | NamedTarget


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a policy, with targets that are paged together or in rotation."""

    #: Delay of the step, counted from the start of the round.
    after: timedelta
    targets: tuple[Target, ...]
    #: True if each new alert pages only the next target.
    takes_turns: bool = False


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step with named targets, such as `5m schedule:primary user:bob`."""

    after: timedelta
    targets: tuple[AnyTarget, ...]
    takes_turns: bool = False


@dataclass(frozen=True, slots=True)
class EscalationPlan:
    """The steps of a policy, and how many times the steps are repeated."""

    steps: tuple[Step, ...]
    repeats: int = 0
    #: Pause between the last step and the next round.
    pause: timedelta = DEFAULT_REPEAT_PAUSE
    #: Time for which an acknowledgement is valid. None if it does not expire.
    timeout: timedelta | None = None
    #: True if an alert that was acknowledged with a lower severity is triggered again when it
    #: becomes critical.
    retriggers: bool = True


def build_immediate_step(user_id: int) -> Step:
    """Return an additional step that pages a user immediately."""
    return Step(timedelta(), (Target(TargetKind.USER, user_id),))


def check_plan(plan: EscalationPlan) -> None:
    """Check that a plan is valid.

    Stored plans are not checked again, so that new limits do not affect existing policies. Raise
    InvalidError if the plan is invalid.
    """
    _check_steps(plan.steps)
    if not 0 <= plan.repeats <= MAX_REPEATS:
        raise InvalidError(f"Steps can be repeated at most {MAX_REPEATS} times.", field="repeats")
    if not MIN_REPEAT_PAUSE <= plan.pause <= MAX_REPEAT_PAUSE:
        message = "The pause before a repetition must be between 1 minute and 24 hours."
        raise InvalidError(message, field="repeat_pause")
    if (
        plan.timeout is not None
        and not MIN_ACKNOWLEDGEMENT_TIMEOUT <= plan.timeout <= MAX_ACKNOWLEDGEMENT_TIMEOUT
    ):
        message = "The acknowledgement timeout must be between 5 minutes and 24 hours."
        raise InvalidError(message, field="acknowledgement_timeout")


def _check_steps(steps: Sequence[Step]) -> None:
    if not 1 <= len(steps) <= MAX_STEPS:
        raise InvalidError(f"A policy must have between 1 and {MAX_STEPS} steps.", field="steps")
    if any(earlier.after > later.after for earlier, later in pairwise(steps)):
        message = "Sort the steps by delay. Delays are counted from the start of a round."
        raise InvalidError(message, field="steps")
    for number, step in enumerate(steps, 1):
        if not timedelta() <= step.after <= MAX_STEP_DELAY:
            message = f"Step {number}: the delay can be at most 24 hours."
            raise InvalidError(message, field="steps")
        if not 1 <= len(step.targets) <= MAX_TARGETS:
            message = f"Step {number}: choose between 1 and {MAX_TARGETS} targets."
            raise InvalidError(message, field="steps")


_KIND_PATTERN = "|".join(TargetKind)
_ROUND_ROBIN_WORD = "round-robin"
_TARGET_SEPARATOR = re.compile(rf"[\s,]+(?=(?:{_KIND_PATTERN}):)")
_TARGET_PATTERN = re.compile(rf"({_KIND_PATTERN}):\s*(\S.*)", re.DOTALL)


def parse_step(text: str) -> NamedStep:
    """Parse a step such as `5m schedule:primary user:bob`.

    In a step such as `5m round-robin user:alice user:bob`, the targets take turns. Raise
    InvalidError if the text is invalid.
    """
    first, *targets = _TARGET_SEPARATOR.split(text.strip())
    delay, _, words = first.partition(" ")
    takes_turns = words.strip().lower() == _ROUND_ROBIN_WORD
    return NamedStep(
        after=parse_duration(delay if takes_turns else first, field="steps"),
        targets=tuple(map(parse_target, targets)),
        takes_turns=takes_turns,
    )


def parse_target(text: str, field: str = "steps") -> NamedTarget:
    """Parse a target such as `user:alice`.

    Raise InvalidError if the text is invalid.
    """
    found = _TARGET_PATTERN.fullmatch(text.strip().rstrip(","))
    if found is None:
        message = f'"{text[:50]}" is not a target. Use user:NAME, schedule:NAME or channel:NAME.'
        raise InvalidError(message, field=field)
    kind = TargetKind(found[1])
    name = found[2].strip()
    return NamedTarget(kind, name.removeprefix("@") if kind is TargetKind.USER else name)


def serialize_steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Convert steps to their stored format."""
    return [
        {
            "after": int(step.after.total_seconds()),
            "targets": [[each.kind.value, each.id] for each in step.targets],
            **({"round_robin": True} if step.takes_turns else {}),
        }
        for step in steps
    ]


def parse_stored_steps(stored: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Parse steps from their stored format."""
    return tuple(
        Step(
            after=timedelta(seconds=each["after"]),
            targets=tuple(Target(TargetKind(kind), number) for kind, number in each["targets"]),
            takes_turns=each.get("round_robin", False),
        )
        for each in stored
    )


@dataclass(frozen=True, slots=True)
class EscalationProgress:
    """The progress of an escalation: its round, and the next step of the round."""

    #: Number of the round, starting at 1.
    round: int
    #: Index of the next step, starting at 0. If all steps were taken, this is the number of steps.
    step: int
    #: Start of the round, from which delays are counted.
    began_at: datetime


def build_initial_progress(now: datetime) -> EscalationProgress:
    """Return the progress of a new escalation."""
    return EscalationProgress(round=1, step=0, began_at=now)


def find_next_due_time(plan: EscalationPlan, progress: EscalationProgress) -> datetime | None:
    """Return the time when the next step is due, or None if all steps of the round were taken."""
    if progress.step >= len(plan.steps):
        return None
    return progress.began_at + plan.steps[progress.step].after


def advance_after_step(
    plan: EscalationPlan, progress: EscalationProgress, *, now: datetime
) -> EscalationProgress:
    """Return the progress after the next step was taken, possibly late."""
    after = plan.steps[progress.step].after
    late = now - (progress.began_at + after)
    began_at = now - after if late > _LATE_STEP_TOLERANCE else progress.began_at
    return EscalationProgress(round=progress.round, step=progress.step + 1, began_at=began_at)


def advance_after_failure(
    plan: EscalationPlan, progress: EscalationProgress, *, now: datetime
) -> EscalationProgress:
    """Return the progress after a step that reached nobody.

    The following step is due immediately.
    """
    due = find_next_due_time(plan, progress)
    if due is None or due <= now:
        return progress
    return replace(progress, began_at=now - plan.steps[progress.step].after)


def advance_after_round(
    plan: EscalationPlan, progress: EscalationProgress, *, now: datetime
) -> EscalationProgress | None:
    """Return the progress after a round that reached a user, or None after the last round."""
    if progress.round > plan.repeats:
        return None
    return EscalationProgress(round=progress.round + 1, step=0, began_at=now + plan.pause)


def advance_after_failed_round(
    plan: EscalationPlan, progress: EscalationProgress, *, started_at: datetime, now: datetime
) -> EscalationProgress:
    """Return the progress after a round that reached nobody.

    `started_at` is the start of the escalation.
    """
    passed = max(now - started_at, timedelta())
    pause = min(max(min(plan.pause, _MIN_UNREACHED_PAUSE), passed / 4), MAX_UNREACHED_PAUSE)
    return EscalationProgress(round=progress.round + 1, step=0, began_at=now + pause)


def shift_escalation_progress(
    progress: EscalationProgress, length: timedelta
) -> EscalationProgress:
    """Shift the progress of an escalation by a duration, which may be negative."""
    return replace(progress, began_at=progress.began_at + length)


def format_target(kind: TargetKind, name: str | None) -> str:
    """Describe a target in words, such as `channel ops`.

    `name` is None if the target was deleted.
    """
    if name is None:
        return f"a deleted {kind}"
    if kind is TargetKind.USER:
        return f"@{name}"
    return f"the people on call in {name}" if kind is TargetKind.SCHEDULE else f"channel {name}"


def format_step(after: timedelta, targets: Sequence[str], *, takes_turns: bool = False) -> str:
    """Describe a step in a sentence."""
    when = f"After {format_duration_words(after)}" if after else "Immediately"
    how = ", round-robin" if takes_turns else ""
    return f"{when}{how}: {join_words(targets or ['nobody'])}."


def format_repeats(repeats: int, pause: timedelta) -> str:
    """Describe the number of repeats in a sentence."""
    if not repeats:
        return "No repeats."
    times = "once" if repeats == 1 else f"{repeats} times"
    return f"Repeats {times}, {format_duration_words(pause)} after the last step."


def format_timeout(timeout: timedelta) -> str:
    """Describe the acknowledgement timeout in a sentence."""
    return f"Acknowledgements expire after {format_duration_words(timeout)}."


NO_RETRIGGER_SENTENCE = "An acknowledged alert that becomes critical stays acknowledged."


def format_conditions(conditions: AlertConditions) -> str:
    """Describe the alerts that meet conditions, as the subject of a sentence."""
    severities = (
        f"{join_words(conditions.severities, 'or')} alerts" if conditions.severities else "Alerts"
    )
    parts = [severities[0].upper() + severities[1:]]
    if conditions.environments:
        parts.append(f"in environment {join_words(conditions.environments, 'or')}")
    if conditions.services:
        parts.append(f"for service {join_words(conditions.services, 'or')}")
    if conditions.labels:
        parts.append(f"with {conditions.labels_text}")
    return " ".join(parts) if len(parts) > 1 or conditions.severities else "All alerts"


def format_mute_reason(mute: Mute) -> str:
    """Describe the reason why an alert is muted, as part of a sentence."""
    if mute.kind is MuteKind.SILENCE and not mute.has_comment:
        return f"silence {mute.id}"
    return _MUTE_PHRASES[mute.kind].format(mute.name.rstrip("."))
