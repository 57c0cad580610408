"""Calculates which users would have been paged for past alerts, and when.

The alerts are replayed with the times at which they were opened, acknowledged and resolved. Current
routes and policies are used, but schedules are used as they were in the past. Silences, quiet hours
and contacts are ignored.
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

from domain.alerts.formats.base import ParserSettings
from domain.alerts.listing.status_history import find_status_changes
from domain.alerts.matching.alert_labels import find_alert_labels
from domain.core.clock import format_message_time
from domain.core.errors import InvalidError
from domain.paging.escalations.policies import (
    find_pageable_users,
    find_target_names,
    list_applicable_policies,
)
from domain.paging.escalations.policy_steps import (
    EscalationPlan,
    EscalationProgress,
    Step,
    Target,
    TargetKind,
    advance_after_failure,
    advance_after_round,
    advance_after_step,
    build_initial_progress,
    find_next_due_time,
)
from domain.paging.escalations.routes import find_route_names, load_routing
from domain.paging.escalations.types import (
    AlertRouteDryRun,
    DryRunAlert,
    DryRunPage,
    EscalationPolicy,
)
from domain.paging.on_call.final_schedule import OnCallSpan, compute_spans
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.projects.row_ownership import find_group_chains, select_project_ids
from domain.projects.views import Namespace, ProjectOrGroup
from models import Alert, Project

_TRIGGERED = "triggered"
#: Maximum number of alerts in a dry run. The newest alerts are used.
MAX_DRY_RUN_ALERTS = 500
#: Maximum number of pages in a dry run, including steps that reach nobody.
MAX_DRY_RUN_PAGES = 5_000
#: Maximum number of simulated steps for an alert. Each time an alert is reopened, its policy
#: starts again.
_MAX_STEPS_PER_ALERT = 1_000
DEFAULT_DRY_RUN_PERIOD = timedelta(days=7)
MAX_DRY_RUN_PERIOD = timedelta(days=92)


class PastStatusChange(NamedTuple):
    """A past change to an alert's status, with its time."""

    at: datetime
    status: str


class TriggeredPeriod(NamedTuple):
    """A period during which an alert was triggered.

    `end` is None if the alert is still triggered.
    """

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """A step that would have been taken."""

    at: datetime
    round: int
    #: Number of the step, starting at 1.
    number: int
    step: Step


def find_triggered_periods(
    opened_at: datetime, changes: Iterable[PastStatusChange], ended_at: datetime | None
) -> Sequence[TriggeredPeriod]:
    """Return the periods during which an alert was triggered.

    `ended_at` is the time at which a report resolved the alert, or None.
    """
    found: list[TriggeredPeriod] = []
    start: datetime | None = opened_at
    ends = [PastStatusChange(max(ended_at, opened_at), "resolved")] if ended_at else []
    for change in sorted([*changes, *ends]):
        if change.status == _TRIGGERED:
            start = start or change.at
        elif start is not None:
            found.append(TriggeredPeriod(start, change.at))
            start = None
    return found if start is None else [*found, TriggeredPeriod(start, None)]


def simulate_steps(
    plan: EscalationPlan,
    triggered_period: TriggeredPeriod,
    reaches: Callable[[Step, datetime], bool],
    *,
    until: datetime,
) -> Iterator[SimulatedStep]:
    """Yield the steps that a plan takes while an alert is triggered, until a given time.

    `reaches` returns whether a step would have reached anyone at a given time. Rounds that reach
    nobody count too, so the simulation also ends for a plan without recipients.
    """
    end = until if triggered_period.end is None else min(triggered_period.end, until)
    progress: EscalationProgress | None = build_initial_progress(triggered_period.start)
    last = triggered_period.start
    while progress is not None:
        due = find_next_due_time(plan, progress)
        if due is None:
            progress = advance_after_round(plan, progress, now=last)
            continue
        if due >= end:
            return
        step = plan.steps[progress.step]
        yield SimulatedStep(due, progress.round, progress.step + 1, step)
        last, progress = due, advance_after_step(plan, progress, now=due)
        if not reaches(step, due):
            progress = advance_after_failure(plan, progress, now=due)


def build_dry_run_period(
    since: datetime | None, until: datetime | None, *, now: datetime
) -> Period:
    """Return the period of a dry run, which is one week by default.

    Raise InvalidError if the period is empty or too long.
    """
    end = min(until or now, now)
    try:
        start = since or end - DEFAULT_DRY_RUN_PERIOD
    except OverflowError as error:
        raise InvalidError("This time is too far in the past.", field="until") from error
    if start >= end:
        raise InvalidError("The start must be before the end, and in the past.", field="since")
    if end - start > MAX_DRY_RUN_PERIOD:
        message = f"A dry run can cover at most {MAX_DRY_RUN_PERIOD.days} days."
        raise InvalidError(message, field="since")
    return Period(start, end)


def simulate_pages(
    holder: ProjectOrGroup, period: Period, *, session: Session, parser_settings: ParserSettings
) -> AlertRouteDryRun:
    """Return the pages that the newest alerts in a period would have caused."""
    rows = _find_newest_alerts(holder, period, session=session)
    projects = [
        Namespace(project_id=project_id, path=path)
        for project_id, path in {(row.project_id, row.path) for row in rows}
    ]
    world = _RouteSimulation(projects, period, session=session)
    labels = find_alert_labels(
        [row.id for row in rows[:MAX_DRY_RUN_ALERTS]], session=session, reading=parser_settings
    )
    changes = _find_status_changes([row.id for row in rows[:MAX_DRY_RUN_ALERTS]], session=session)
    routing = load_routing([each.id or 0 for each in projects], session=session)
    known = [row for row in rows[:MAX_DRY_RUN_ALERTS] if row.id in labels]
    choices = {row.id: routing[row.project_id].choose_policy(labels[row.id]) for row in known}
    turns = Counter(each.policy_id for each in choices.values())
    found: list[DryRunAlert] = []
    left = MAX_DRY_RUN_PAGES
    for row in known:
        if left <= 0:
            break
        choice = choices[row.id]
        policy = world.policies.get(choice.policy_id or 0)
        # Round-robin steps start with the oldest alert in the period.
        turns[choice.policy_id] -= 1
        world.turn = turns[choice.policy_id]
        alert = world.replay_alert(
            row, world.routes.get(choice.route_id or 0), policy, changes.get(row.id, ())
        )
        left -= len(alert.pages) + len(alert.notes)
        found.append(alert)
    return AlertRouteDryRun(
        since=period.start,
        until=period.end,
        alerts=found,
        truncated=len(found) < len(rows),
    )


def _find_newest_alerts(
    holder: ProjectOrGroup, period: Period, *, session: Session
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the newest alerts that started in a period, plus one alert to detect truncation."""
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
            Alert.project_id.in_(select_project_ids(holder)),
            Alert.started_at >= period.start,
            Alert.started_at < period.end,
        )
        .order_by(Alert.started_at.desc(), Alert.id.desc())
        .limit(MAX_DRY_RUN_ALERTS + 1)
    ).all()


def _find_status_changes(
    alert_ids: Sequence[int], *, session: Session
) -> Mapping[int, Sequence[PastStatusChange]]:
    found: dict[int, list[PastStatusChange]] = {}
    for row in find_status_changes(alert_ids, session=session):
        found.setdefault(row.alert_id, []).append(PastStatusChange(row.created_at, row.text))
    return found


class _RouteSimulation:
    """Simulates pages with the routes, policies, users and schedules of projects."""

    def __init__(self, projects: Sequence[Namespace], period: Period, *, session: Session) -> None:
        self._until = period.end
        #: Number of earlier alerts with the same policy, which determines the next round-robin
        #: target.
        self.turn = 0
        used = find_group_chains([each.id or 0 for each in projects], session=session).values()
        self.policies = {each.id: each for each in list_applicable_policies(used, session=session)}
        self.routes = find_route_names(used, session=session)
        targets = {
            target
            for policy in self.policies.values()
            for step in policy.plan.steps
            for target in step.targets
        }
        self._on_call_spans = _find_on_call_spans(targets, period, session=session)
        people = {each.id for each in targets if each.kind is TargetKind.USER}
        for parts in self._on_call_spans.values():
            people.update(user_id for part in parts for user_id in part.user_ids)
        today = period.end.date()
        self._people = {
            each.id: find_pageable_users(each, people, session=session, today=today)
            for each in projects
        }
        self._names = find_target_names(targets, session=session)

    def replay_alert(
        self,
        row: Row[*tuple[Any, ...]],
        route: str | None,
        policy: EscalationPolicy | None,
        changes: Sequence[PastStatusChange],
    ) -> DryRunAlert:
        """Return the pages that an alert would have caused."""
        pages: list[DryRunPage] = []
        notes: list[str] = []
        for taken in islice(self._simulate_alert_steps(row, policy, changes), _MAX_STEPS_PER_ALERT):
            found = list(
                self._find_step_recipients(taken.step, taken.at, row.project_id, round_=taken.round)
            )
            pages += [
                DryRunPage(at=taken.at, round=taken.round, step=taken.number, **each)
                for each in found
            ]
            if not found:
                moment = format_message_time(taken.at)
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

    def _simulate_alert_steps(
        self,
        row: Row[*tuple[Any, ...]],
        policy: EscalationPolicy | None,
        changes: Sequence[PastStatusChange],
    ) -> Iterator[SimulatedStep]:
        if policy is not None:
            for during in _find_alert_periods(row, changes):
                reaches = partial(self._can_reach_anyone, project_id=row.project_id)
                yield from simulate_steps(policy.plan, during, reaches, until=self._until)

    def _can_reach_anyone(self, step: Step, moment: datetime, project_id: int) -> bool:
        return any(True for _ in self._find_step_recipients(step, moment, project_id))

    def _find_step_recipients(
        self, step: Step, moment: datetime, project_id: int, *, round_: int = 1
    ) -> Iterator[dict[str, str]]:
        """Yield the users and channels that a step pages for an alert, without duplicates."""
        if not step.takes_turns:
            yield from self._find_target_recipients(step.targets, moment, project_id)
            return
        begin = (self.turn + round_ - 1) % len(step.targets)
        for target in (*step.targets[begin:], *step.targets[:begin]):
            if found := list(self._find_target_recipients((target,), moment, project_id)):
                yield from found
                return

    def _find_target_recipients(
        self, targets: Sequence[Target], moment: datetime, project_id: int
    ) -> Iterator[dict[str, str]]:
        users: dict[int, None] = {}
        for target in targets:
            if target.kind is TargetKind.CHANNEL and target in self._names:
                yield {"channel": self._names[target]}
            elif target.kind is TargetKind.USER:
                users[target.id] = None
            elif target.kind is TargetKind.SCHEDULE:
                users.update(
                    dict.fromkeys(
                        _find_on_call_users(self._on_call_spans.get(target.id, ()), moment)
                    )
                )
        people = self._people[project_id]
        yield from ({"user": people[each]} for each in users if each in people)


def _find_alert_periods(
    row: Row[*tuple[Any, ...]], changes: Sequence[PastStatusChange]
) -> Sequence[TriggeredPeriod]:
    is_over = row.status == "resolved"
    if is_over and not changes and row.last_event_at == row.created_at:
        return ()  # The alert was stored as resolved, so it paged nobody.
    return find_triggered_periods(row.created_at, changes, row.ended_at if is_over else None)


def _find_on_call_spans(
    targets: Iterable[Target], period: Period, *, session: Session
) -> Mapping[int, Sequence[OnCallSpan]]:
    """Return the on-call spans of each schedule in chronological order, by schedule ID."""
    ids = {each.id for each in targets if each.kind is TargetKind.SCHEDULE}
    plans = load_schedule_plans(ids, period, session=session, now=period.end)
    return {each: compute_spans(plan, period.start, period.end) for each, plan in plans.items()}


def _find_on_call_users(parts: Sequence[OnCallSpan], moment: datetime) -> tuple[int, ...]:
    index = bisect_right(parts, moment, key=lambda part: part.start) - 1
    return parts[index].user_ids if index >= 0 and moment < parts[index].end else ()
