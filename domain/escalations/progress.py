"""Which step of a plan comes next, and when: pure, for escalations and dry runs alike."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.escalations.steps import Plan

#: A step that is later than this, because no worker ran, moves the steps after it: everybody has
#: as much time to answer as the policy says.
_PUNCTUAL = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an escalation has come."""

    #: From 1.
    round: int
    #: The index of the next step, from 0.
    step: int
    #: When the round began, from which delays count.
    began_at: datetime


def beginning(now: datetime) -> Progress:
    """Return the progress of an escalation that begins."""
    return Progress(round=1, step=0, began_at=now)


def next_due(plan: Plan, progress: Progress) -> datetime | None:
    """Return when the next step is due; None if the plan has become shorter and has no such."""
    if progress.step >= len(plan.steps):
        return None
    return progress.began_at + plan.steps[progress.step].after


def after_step(
    plan: Plan, progress: Progress, *, now: datetime, has_reached: bool
) -> Progress | None:
    """Return the progress after the next step was taken; None if it was the last of all.

    If the step reached nobody, the one after it is due at once.
    """
    after = plan.steps[progress.step].after
    late = now - (progress.began_at + after)
    began_at = now - after if late > _PUNCTUAL else progress.began_at
    following = progress.step + 1
    if following < len(plan.steps):
        if not has_reached:
            began_at = now - plan.steps[following].after
        return Progress(round=progress.round, step=following, began_at=began_at)
    return after_round(plan, progress, now=now)


def after_round(plan: Plan, progress: Progress, *, now: datetime) -> Progress | None:
    """Return the progress after the last step of a round; None if it was the last round."""
    if progress.round > plan.repeats:
        return None
    return Progress(round=progress.round + 1, step=0, began_at=now + plan.pause)


def held_for(progress: Progress, length: timedelta) -> Progress:
    """Return the progress after a mute, during which no time passed for the steps."""
    return replace(progress, began_at=progress.began_at + length)
