"""Calculates which users past alerts would have paged, and when.

The alerts are replayed with the times at which they were opened, acknowledged and resolved. Routes
and policies are the current ones, while schedules are used as they were. Silences, quiet hours and
contacts are ignored.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.alerts.listing.status_notes import status_notes
from domain.alerts.matching.labels import labels_of
from domain.core.clock import date_and_time
from domain.core.errors import InvalidError
from domain.paging.escalations.policies import names_of, used_policies, who_may_be_paged
from domain.paging.escalations.routes import read_routing, route_names
from domain.paging.escalations.steps import (
    Plan,
    Progress,
    Step,
    Target,
    TargetKind,
    after_failure,
    after_round,
    after_step,
    beginning,
    next_due,
)
from domain.paging.escalations.types import (
    AlertRouteDryRun,
    DryRunAlert,
    DryRunPage,
    EscalationPolicy,
)
from domain.paging.on_call.final_schedule import Span, spans
from domain.paging.on_call.schedule_queries import read_plans
from domain.paging.on_call.schedule_values import Period
from domain.projects.owners import lineages, projects_of
from domain.projects.views import Holder, Namespace
from models import Alert, Project

_TRIGGERED = "triggered"
#: Maximum number of alerts in a dry run. The newest alerts are used.
MOST_ALERTS = 500
#: Maximum number of pages and of steps that reach nobody.
MOST_PAGES = 5_000
#: Maximum number of steps of an alert. Reopened alerts start the policy again.
_MOST_STEPS = 1_000
USUAL_PERIOD = timedelta(days=7)
LONGEST_PERIOD = timedelta(days=92)


class StatusChange(NamedTuple):
    """A change of an alert's status at a given time."""

    at: datetime
    status: str


class Triggered(NamedTuple):
    """A period during which an alert was triggered; `end` is None while it still is."""

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that would have been taken."""

    at: datetime
    round: int
    #: Number of the step, starting at 1.
    number: int
    step: Step


def triggered_times(
    opened_at: datetime, changes: Iterable[StatusChange], ended_at: datetime | None
) -> Sequence[Triggered]:
    """Return the periods during which an alert was triggered.

    `ended_at` is the time at which a report resolved the alert, or None.
    """
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
    """Yield the steps that a plan takes while an alert is triggered, until a given time.

    `reaches` returns whether a step would have reached anyone at that time. Rounds that reach
    nobody count as well, so that a plan without recipients ends.
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


def period(since: datetime | None, until: datetime | None, *, now: datetime) -> Period:
    """Return the period of a dry run, a week by default.

    Raise InvalidError if the period is empty or too long.
    """
    end = min(until or now, now)
    try:
        start = since or end - USUAL_PERIOD
    except OverflowError as error:
        raise InvalidError("This time is too far in the past.", field="until") from error
    if start >= end:
        raise InvalidError("The start must be before the end, and in the past.", field="since")
    if end - start > LONGEST_PERIOD:
        message = f"A dry run can cover at most {LONGEST_PERIOD.days} days."
        raise InvalidError(message, field="since")
    return Period(start, end)


def dry_run(
    holder: Holder, asked: Period, *, session: Session, reading: Reading
) -> AlertRouteDryRun:
    """Return the pages that the newest alerts of a period would have caused."""
    rows = _alerts(holder, asked, session=session)
    projects = [
        Namespace(project_id=project_id, path=path)
        for project_id, path in {(row.project_id, row.path) for row in rows}
    ]
    world = _World(projects, asked, session=session)
    labels = labels_of([row.id for row in rows[:MOST_ALERTS]], session=session, reading=reading)
    changes = _status_changes([row.id for row in rows[:MOST_ALERTS]], session=session)
    routing = read_routing([each.id or 0 for each in projects], session=session)
    known = [row for row in rows[:MOST_ALERTS] if row.id in labels]
    choices = {row.id: routing[row.project_id].choose(labels[row.id]) for row in known}
    turns = Counter(each.policy_id for each in choices.values())
    found: list[DryRunAlert] = []
    left = MOST_PAGES
    for row in known:
        if left <= 0:
            break
        choice = choices[row.id]
        policy = world.policies.get(choice.policy_id or 0)
        # Rotations start with the oldest alert of the period.
        turns[choice.policy_id] -= 1
        world.turn = turns[choice.policy_id]
        alert = world.replayed(
            row, world.routes.get(choice.route_id or 0), policy, changes.get(row.id, ())
        )
        left -= len(alert.pages) + len(alert.notes)
        found.append(alert)
    return AlertRouteDryRun(
        since=asked.start,
        until=asked.end,
        alerts=found,
        truncated=len(found) < len(rows),
    )


def _alerts(holder: Holder, asked: Period, *, session: Session) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the newest alerts that started in a period, and one more to detect truncation."""
    return session.execute(
        select(
            Alert.id,
            Alert.iid,
            Alert.project_id,
            Project.path,
            Alert.title,
            Alert.status,
            Alert.created_at,
            Alert.ended_at,
            Alert.last_event_at,
        )
        .join(Project, Project.id == Alert.project_id)
        .where(
            Alert.project_id.in_(projects_of(holder)),
            Alert.started_at >= asked.start,
            Alert.started_at < asked.end,
        )
        .order_by(Alert.started_at.desc(), Alert.id.desc())
        .limit(MOST_ALERTS + 1)
    ).all()


def _status_changes(
    alert_ids: Sequence[int], *, session: Session
) -> Mapping[int, Sequence[StatusChange]]:
    found: dict[int, list[StatusChange]] = {}
    for row in status_notes(alert_ids, session=session):
        found.setdefault(row.alert_id, []).append(StatusChange(row.created_at, row.text))
    return found


class _World:
    """The routes, policies, users and schedules of projects in a period."""

    def __init__(self, projects: Sequence[Namespace], asked: Period, *, session: Session) -> None:
        self._until = asked.end
        #: Number of earlier alerts of the policy, which determines the next round-robin target.
        self.turn = 0
        used = lineages([each.id or 0 for each in projects], session=session).values()
        self.policies = {each.id: each for each in used_policies(used, session=session)}
        self.routes = route_names(used, session=session)
        targets = {
            target
            for policy in self.policies.values()
            for step in policy.plan.steps
            for target in step.targets
        }
        self._duties = _duties(targets, asked, session=session)
        people = {each.id for each in targets if each.kind is TargetKind.USER}
        for parts in self._duties.values():
            people.update(user_id for part in parts for user_id in part.user_ids)
        today = asked.end.date()
        self._people = {
            each.id: who_may_be_paged(each, people, session=session, today=today)
            for each in projects
        }
        self._names = names_of(targets, session=session)

    def replayed(
        self,
        row: Row[*tuple[Any, ...]],
        route: str | None,
        policy: EscalationPolicy | None,
        changes: Sequence[StatusChange],
    ) -> DryRunAlert:
        """Return the pages that an alert would have caused."""
        pages: list[DryRunPage] = []
        notes: list[str] = []
        for taken in islice(self._taken(row, policy, changes), _MOST_STEPS):
            found = list(self._pages(taken.step, taken.at, row.project_id, round_=taken.round))
            pages += [
                DryRunPage(at=taken.at, round=taken.round, step=taken.number, **each)
                for each in found
            ]
            if not found:
                moment = date_and_time(taken.at)
                notes.append(f"Step {taken.number} would have paged nobody at {moment}.")
        return DryRunAlert(
            iid=row.iid,
            project=row.path,
            title=row.title,
            opened_at=row.created_at,
            route=route,
            escalation_policy=policy.name if policy else None,
            pages=pages,
            notes=notes,
        )

    def _taken(
        self,
        row: Row[*tuple[Any, ...]],
        policy: EscalationPolicy | None,
        changes: Sequence[StatusChange],
    ) -> Iterator[Taken]:
        if policy is not None:
            for during in _triggered(row, changes):
                reaches = partial(self._reaches, project_id=row.project_id)
                yield from replay(policy.plan, during, reaches, until=self._until)

    def _reaches(self, step: Step, at: datetime, project_id: int) -> bool:
        return any(True for _ in self._pages(step, at, project_id))

    def _pages(
        self, step: Step, at: datetime, project_id: int, *, round_: int = 1
    ) -> Iterator[dict[str, str]]:
        """Yield the users and channels that a step pages for an alert, without duplicates."""
        if not step.takes_turns:
            yield from self._pages_to(step.targets, at, project_id)
            return
        begin = (self.turn + round_ - 1) % len(step.targets)
        for target in (*step.targets[begin:], *step.targets[:begin]):
            if found := list(self._pages_to((target,), at, project_id)):
                yield from found
                return

    def _pages_to(
        self, targets: Sequence[Target], at: datetime, project_id: int
    ) -> Iterator[dict[str, str]]:
        users: dict[int, None] = {}
        for target in targets:
            if target.kind is TargetKind.CHANNEL and target in self._names:
                yield {"channel": self._names[target]}
            elif target.kind is TargetKind.USER:
                users[target.id] = None
            elif target.kind is TargetKind.SCHEDULE:
                users.update(dict.fromkeys(_on_call(self._duties.get(target.id, ()), at)))
        people = self._people[project_id]
        yield from ({"user": people[each]} for each in users if each in people)


def _triggered(row: Row[*tuple[Any, ...]], changes: Sequence[StatusChange]) -> Sequence[Triggered]:
    is_over = row.status == "resolved"
    if is_over and not changes and row.last_event_at == row.created_at:
        return ()  # The alert was stored as resolved, so it never paged.
    return triggered_times(row.created_at, changes, row.ended_at if is_over else None)


def _duties(
    targets: Iterable[Target], asked: Period, *, session: Session
) -> Mapping[int, Sequence[Span]]:
    """Return the spans of who was on call in each schedule, in order."""
    ids = {each.id for each in targets if each.kind is TargetKind.SCHEDULE}
    # An alert of the period may have been received some time after it started.
    plans = read_plans(ids, asked, session=session, now=asked.end)
    return {each: spans(plan, asked.start, asked.end) for each, plan in plans.items()}


def _on_call(parts: Sequence[Span], at: datetime) -> tuple[int, ...]:
    index = bisect_right(parts, at, key=lambda part: part.start) - 1
    return parts[index].user_ids if index >= 0 and at < parts[index].end else ()
