"""Which step of a plan comes next, and when: pure, for escalations and dry runs alike."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.escalations.steps import Plan

#: A step that is later than this, because no worker ran, moves the steps after it: everybody has
#: as much time to answer as the policy says.
_PUNCTUAL = timedelta(seconds=30)
#: A round that reached nobody is followed by another one: soon at first, later after a quarter of
#: the time that has passed, and always within this.
_SOON = timedelta(minutes=5)
LONGEST_UNREACHED = timedelta(minutes=30)


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
