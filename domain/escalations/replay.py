"""What a plan would have done for an alert: pure, by the times at which the alert was triggered."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from domain.escalations.progress import (
    Progress,
    after_failure,
    after_round,
    after_step,
    beginning,
    next_due,
)
from domain.escalations.steps import Plan, Step

_TRIGGERED = "triggered"


class StatusChange(NamedTuple):
    """A status that an alert got at a moment."""

    at: datetime
    status: str


class Triggered(NamedTuple):
    """A time during which an alert was triggered; `end` is None while it still is."""

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that would have been taken."""

    at: datetime
    round: int
    #: Of the step, from 1.
    number: int
    step: Step


def triggered_times(
    opened_at: datetime, changes: Iterable[StatusChange], ended_at: datetime | None
) -> Sequence[Triggered]:
    """Return when an alert was triggered; `ended_at` if a report resolved it."""
    found: list[Triggered] = []
    start: datetime | None = opened_at
    ends = [StatusChange(max(ended_at, opened_at), "resolved")] if ended_at else []
    for change in sorted([*changes, *ends]):
        if change.status == _TRIGGERED:
            start = start or change.at
        elif start is not None:
            found.append(Triggered(start, change.at))
            start = None
    return found if start is None else [*found, Triggered(start, None)]


def replay(
    plan: Plan,
    during: Triggered,
    reaches: Callable[[Step, datetime], bool],
    *,
    until: datetime,
) -> Iterator[Taken]:
    """Return the steps that a plan takes while an alert is triggered, up to a moment.

    `reaches` says whether a step would have reached anybody at that time. Rounds that reach nobody
    count as well, so that a plan without anybody comes to an end.
    """
    end = until if during.end is None else min(during.end, until)
    progress: Progress | None = beginning(during.start)
    last = during.start
    while progress is not None:
        due = next_due(plan, progress)
        if due is None:
            progress = after_round(plan, progress, now=last)
            continue
        if due >= end:
            return
        step = plan.steps[progress.step]
        yield Taken(due, progress.round, progress.step + 1, step)
        last, progress = due, after_step(plan, progress, now=due)
        if not reaches(step, due):
            progress = after_failure(plan, progress, now=due)


def changes_by_alert(
    rows: Iterable[tuple[int, datetime, str]],
) -> Mapping[int, Sequence[StatusChange]]:
    """Return status changes by alert, from rows of alert, time and status."""
    found: dict[int, list[StatusChange]] = {}
    for alert_id, at, status in rows:
        found.setdefault(alert_id, []).append(StatusChange(at, status))
    return found
