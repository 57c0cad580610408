"""Queues of alert changes for other parts of the service. Each alert's changes stay in order.

A trigger stores each change in the transaction that makes it (migrations 0051 and 0059), so no
change is lost. A change is deleted in the transaction that handles it, so no change is handled
twice. Several workers can share a queue: each worker locks the changes that it takes, and other
workers skip locked changes.

Changes to more urgent alerts are handled first. Projects take turns, so one project with many
changes does not delay the others.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import (
    ColumnElement,
    Integer,
    column,
    delete,
    exists,
    func,
    or_,
    select,
    values,
)
from sqlalchemy.orm import Session

from domain.alerts.parsing.incoming_alert import Severity
from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.core.due_time_sql import NOW
from domain.core.types.base import Resource
from domain.delivery.queue import (
    Backoff,
    DeliveryQueue,
    FailingDestination,
    QueueState,
    read_queue_state,
)
from domain.projects.escalation_followers import ESCALATIONS_FOLLOWER
from models import AlertChange, AlertFollower, Project

CHANGE_QUEUE = DeliveryQueue(
    due_at=AlertChange.next_try_at,
    is_due_without_time=True,
    subject=(AlertChange.follower, AlertChange.alert_id),
    backoff=Backoff(first=timedelta(seconds=2), longest=timedelta(minutes=5)),
)
_MAX_ERROR_LENGTH = 500
#: Minimum number of changes that each project can contribute to a batch.
_MIN_CHANGES_PER_PROJECT = 10


class Follower(StrEnum):
    """A part of the service that acts when an alert changes."""

    ESCALATIONS = ESCALATIONS_FOLLOWER
    INCIDENTS = "incidents"
    WEBHOOKS = "webhooks"


def add_follower(project_id: int, follower: Follower, *, session: Session) -> None:
    """Start queueing changes to a project's alerts for a follower."""
    insert = build_session_insert(AlertFollower, session=session)
    row = {"project_id": project_id, "follower": follower.value}
    session.execute(insert.values(row).on_conflict_do_nothing())


def remove_follower(project_id: int, follower: Follower, *, session: Session) -> None:
    """Stop queueing changes for a follower.

    The follower still handles changes that are already queued.
    """
    session.execute(
        delete(AlertFollower).where(
            AlertFollower.project_id == project_id, AlertFollower.follower == follower.value
        )
    )


class ChangeKind(StrEnum):
    """The kinds of changes to an alert, such as opened or resolved."""

    OPENED = "opened"
    ACKNOWLEDGED = "acknowledged"
    IGNORED = "ignored"
    RESOLVED = "resolved"
    #: Change of the alert's status back to triggered.
    REOPENED = "reopened"
    #: Increase of the alert's severity by a later report.
    RAISED = "raised"


#: Kinds of changes that set the status of an alert to triggered.
TRIGGERING_KINDS = frozenset({ChangeKind.OPENED, ChangeKind.REOPENED})


class QueuedChange(Resource):
    """A change to an alert that one follower must handle.

    The alert may have been deleted since the change.
    """

    id: int
    project_id: int
    alert_id: int
    kind: ChangeKind
    #: Time of the change, according to the database clock.
    created_at: datetime
    #: Number of failed attempts to handle the change.
    tries: int


@dataclass(frozen=True, slots=True)
class _ChangeLane:
    """The queued changes of one severity in one project."""

    severity: int
    project_id: int


@dataclass
class ProjectRoundRobin:
    """The project that a follower served last, for each severity."""

    last: dict[int, int] = field(default_factory=dict)

    def order_lanes(self, lanes: Sequence[_ChangeLane]) -> Sequence[_ChangeLane]:
        """Return lanes sorted by severity, with projects rotated within each severity."""
        return sorted(
            lanes,
            key=lambda lane: (lane.severity, self._was_served_this_round(lane), lane.project_id),
        )

    def _was_served_this_round(self, lane: _ChangeLane) -> bool:
        return lane.project_id <= self.last.get(lane.severity, 0)

    def record_last_served_project(self, lane: _ChangeLane) -> None:
        """Make the lane's project the last project served for the lane's severity."""
        self.last[lane.severity] = lane.project_id


def build_changes_due_condition(followers: Collection[Follower]) -> ColumnElement[bool]:
    """Return a condition that is true if any of the followers has a change that is due."""
    return or_(
        *(
            exists().where(
                AlertChange.follower == each.value, CHANGE_QUEUE.build_due_condition(NOW)
            )
            for each in followers
        )
    )


def lock_due_changes(
    follower: Follower, *, turns: ProjectRoundRobin, session: Session, now: datetime, limit: int
) -> Sequence[QueuedChange]:
    """Lock and return due changes, at most one for each alert.

    A change is returned only after all earlier changes of its alert have been handled.
    """
    lanes = _find_lanes(follower, session=session)
    alike = Counter(lane.severity for lane in lanes)
    taken: list[AlertChange] = []
    full: list[tuple[_ChangeLane, int]] = []
    for lane in turns.order_lanes(lanes):
        share = min(
            max(limit // alike[lane.severity], _MIN_CHANGES_PER_PROJECT), limit - len(taken)
        )
        rows = _lock_lane_changes(follower, lane, share, session=session, now=now)
        taken += rows
        if rows:
            turns.record_last_served_project(lane)
        if len(rows) == share:
            full.append((lane, rows[-1].id))
        if len(taken) == limit:
            break
    for lane, last_id in full:  # Use the capacity that other projects left unused.
        rest = limit - len(taken)
        taken += _lock_lane_changes(follower, lane, rest, after=last_id, session=session, now=now)
    return [QueuedChange.model_validate(row) for row in taken]


def _find_lanes(follower: Follower, *, session: Session) -> Sequence[_ChangeLane]:
    """Return all lanes with waiting changes, using one index lookup per lane."""
    ranks = values(column("severity", Integer)).data([(each.rank,) for each in Severity]).cte()
    waiting = select(func.min(AlertChange.project_id)).where(AlertChange.follower == follower.value)
    first = waiting.where(AlertChange.severity == ranks.c.severity).scalar_subquery()
    lanes = select(ranks.c.severity, first.label("project_id")).cte("lanes", recursive=True)
    following = waiting.where(
        AlertChange.severity == lanes.c.severity, AlertChange.project_id > lanes.c.project_id
    ).scalar_subquery()
    lanes = lanes.union_all(
        select(lanes.c.severity, following).where(lanes.c.project_id.is_not(None))
    )
    found = session.execute(
        select(lanes.c.severity, lanes.c.project_id).where(lanes.c.project_id.is_not(None))
    )
    return [_ChangeLane(severity=rank, project_id=project_id) for rank, project_id in found]


def _lock_lane_changes(
    follower: Follower,
    lane: _ChangeLane,
    limit: int,
    *,
    session: Session,
    now: datetime,
    after: int = 0,
) -> Sequence[AlertChange]:
    if not limit:
        return []
    return CHANGE_QUEUE.lock_due_rows(
        AlertChange.follower == follower.value,
        AlertChange.severity == lane.severity,
        AlertChange.project_id == lane.project_id,
        AlertChange.id > after,
        maximum=limit,
        session=session,
        now=now,
    )


@dataclass(frozen=True, kw_only=True)
class AlertChangeBacklog:
    """The changes of one alert that a follower has not handled yet."""

    kinds: frozenset[ChangeKind]
    #: Time of the earliest unhandled change, according to the database clock.
    since: datetime
    #: Number of failed attempts to handle the earliest change.
    tries: int


def find_change_backlog(
    follower: Follower, alert_id: int, *, session: Session
) -> AlertChangeBacklog | None:
    """Return the unhandled changes of an alert, or None if all changes were handled."""
    rows = session.execute(
        select(AlertChange.kind, AlertChange.created_at, AlertChange.tries)
        .where(AlertChange.follower == follower.value, AlertChange.alert_id == alert_id)
        .order_by(AlertChange.id)
    ).all()
    if not rows:
        return None
    kinds = frozenset(ChangeKind(row.kind) for row in rows)
    return AlertChangeBacklog(kinds=kinds, since=rows[0].created_at, tries=rows[0].tries)


def find_oldest_change_time(
    follower: Follower, project_ids: Collection[int], *, session: Session
) -> datetime | None:
    """Return the time of the oldest waiting change in these projects, or None.

    None means that no change is waiting.
    """
    ranks = [each.rank for each in Severity]
    return session.scalar(
        select(func.min(AlertChange.created_at)).where(
            AlertChange.follower == follower.value,
            # In the index, the severity precedes the project, so the query must list all
            # severities.
            AlertChange.severity.in_(ranks),
            AlertChange.project_id.in_(project_ids),
        )
    )


def find_oldest_change_times(*, session: Session) -> Mapping[Follower, datetime]:
    """Return the time of the oldest waiting change for each follower with waiting changes."""
    oldest = select(AlertChange.follower, func.min(AlertChange.created_at))
    rows = session.execute(oldest.group_by(AlertChange.follower)).all()
    return {Follower(name): since for name, since in rows}


def find_alerts_with_later_reopening(
    changes: Sequence[QueuedChange], follower: Follower, *, session: Session
) -> Collection[int]:
    """Return the IDs of alerts that have other reopenings in the follower's queue.

    Reopenings in `changes` are not counted.
    """
    rows = session.scalars(
        select(AlertChange.alert_id).where(
            AlertChange.follower == follower.value,
            AlertChange.alert_id.in_([each.alert_id for each in changes]),
            AlertChange.kind == ChangeKind.REOPENED.value,
            AlertChange.id.not_in([each.id for each in changes]),
        )
    )
    return set(rows)


def delete_handled_changes(changes: Sequence[QueuedChange], *, session: Session) -> None:
    """Delete changes from the queue after a follower has handled them."""
    ids = [change.id for change in changes]
    session.execute(build_bulk_delete(AlertChange).where(AlertChange.id.in_(ids)))


def schedule_change_retry(
    change: QueuedChange, reason: str, *, session: Session, now: datetime
) -> None:
    """Record a failed attempt to handle a change, and schedule the next attempt."""
    CHANGE_QUEUE.schedule_retry(
        change.id,
        change.tries + 1,
        session=session,
        now=now,
        tries=AlertChange.tries + 1,
        last_error=reason[:_MAX_ERROR_LENGTH],
    )


def get_change_queue_state(follower: Follower, *, session: Session) -> QueueState:
    """Return the state of a follower's queue."""
    return read_queue_state(
        AlertChange.follower == follower.value,
        since=AlertChange.created_at,
        has_failed=AlertChange.tries > 0,
        session=session,
    )


def list_failing_projects(follower: Follower, *, session: Session) -> Sequence[FailingDestination]:
    """Return the projects with changes that the follower failed to handle, oldest first."""
    oldest = func.min(AlertChange.created_at).label("oldest")
    rows = session.execute(
        select(
            AlertChange.project_id,
            Project.path,
            func.count().label("waiting"),
            func.max(AlertChange.tries).label("tries"),
            oldest,
            func.min(AlertChange.next_try_at).label("next_try_at"),
            # An error is the name of an exception, so any of several errors is sufficient.
            func.max(AlertChange.last_error).label("last_error"),
        )
        .outerjoin(Project, Project.id == AlertChange.project_id)
        .where(AlertChange.follower == follower.value, AlertChange.tries > 0)
        .group_by(AlertChange.project_id, Project.path)
        .order_by(oldest)
    )
    return [
        FailingDestination(
            id=str(row.project_id),
            name=row.path or "deleted project",
            waiting=row.waiting,
            attempts=row.tries,
            failing_since=row.oldest,
            last_error=row.last_error,
            next_attempt_at=row.next_try_at,
        )
        for row in rows
    ]


def retry_changes(follower: Follower, project_id: int, *, session: Session, now: datetime) -> None:
    """Make a follower's failed changes of a project due."""
    CHANGE_QUEUE.retry_now(
        AlertChange.follower == follower.value,
        AlertChange.severity.in_([each.rank for each in Severity]),
        AlertChange.project_id == project_id,
        session=session,
        now=now,
    )
