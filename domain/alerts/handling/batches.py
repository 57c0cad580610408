"""Batches that change the status of many alerts in slices, and that users can undo.

A batch contains the alerts of one request: selected alerts, or all alerts that match a filter. The
request itself processes the first slice. The worker processes the remaining slices, each in its own
transaction. The previous state of each alert is stored, so that the batch can be undone within a
day. Alerts whose status has changed since the batch are not restored.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, exists, func, insert, or_, select, tuple_
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.alerts.handling.status import (
    StatusChange,
    StatusChangeResult,
    change_locked_alerts,
    lock_project_alerts,
    set_statuses,
)
from domain.alerts.handling.types import MAX_ALERTS_PER_CHANGE
from domain.alerts.listing.filters import STATUSES, AlertFilter
from domain.alerts.listing.project_selection import (
    build_member_projects_query,
    exclude_archived_projects,
)
from domain.alerts.listing.queries import count_matching_alerts, list_alerts
from domain.alerts.listing.sort_orders import NEWEST_FIRST, AlertSlice, parse_sort_cursor
from domain.alerts.listing.status_history import find_last_status_changes
from domain.alerts.parsing.incoming_alert import Severity
from domain.audit.events import EventActor
from domain.core.clock import DOUBLE_SUBMISSION_WINDOW
from domain.core.database.bulk_statements import build_bulk_delete
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.base import Resource, get_column_values
from domain.projects.views import Viewer
from models import Alert, AlertBatch, AlertBatchItem, Project, User

#: Period during which a batch can be undone.
BATCH_UNDO_PERIOD = timedelta(days=1)
_RETENTION_PERIOD = 2 * BATCH_UNDO_PERIOD
_MAX_ITEMS_PER_DELETE = 500
_UNDO_VIA = "by undoing a change"


class BatchState(StrEnum):
    """The states of a batch: running, done, undoing or undone."""

    RUNNING = "running"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"


_ACTIVE_STATES = (BatchState.RUNNING.value, BatchState.UNDOING.value)
_UNDO_STATES = (BatchState.UNDOING.value, BatchState.UNDONE.value)


class BatchView(Resource):
    """A batch of status changes, with its results so far."""

    id: int
    state: BatchState
    status: str
    #: Path of the project, or None for a batch across all of the user's projects.
    project_path: str | None
    #: Query string of the alert list in which the user started the batch.
    list_query: str
    #: Number of matching alerts when the user confirmed the batch, or None if there were too many
    #: to count.
    matched: int | None
    changed: int
    #: Number of alerts whose status could not be changed.
    left: int
    restored: int
    #: Number of alerts that were not restored because of a later change or a conflict.
    kept: int
    can_be_undone: bool

    @property
    def is_in_progress(self) -> bool:
        """True if the batch still has slices that the worker must process."""
        return self.state.value in _ACTIVE_STATES


@dataclass(frozen=True, kw_only=True)
class BatchRequest:
    """A requested status, with the user who requested it and the list that the user came from."""

    status: str
    by: EventActor
    #: ID of the project, or None for a batch across all of the user's projects.
    project_id: int | None
    list_query: str

    @property
    def change(self) -> StatusChange:
        """Change to apply to each alert.

        Raise InvalidError for an unknown status.
        """
        return StatusChange(status=self.status, by=self.by)


def build_batch(
    order: BatchRequest, now: datetime, *, state: BatchState = BatchState.DONE
) -> AlertBatch:
    """Return a new database row for a batch. The caller must add the row to the session."""
    return AlertBatch(
        user_id=order.by.id,
        project_id=order.project_id,
        status=order.change.status,
        list_query=order.list_query,
        changed=0,
        left=0,
        state=state.value,
        created_at=now,
    )


def get_batch_row(
    batch_id: int, user_id: int, *, session: Session, is_locked: bool = False
) -> AlertBatch:
    """Return the database row of a user's batch.

    Raise NotFoundError if the user has no such batch.
    """
    statement = select(AlertBatch).where(AlertBatch.id == batch_id, AlertBatch.user_id == user_id)
    batch = session.scalar(statement.with_for_update() if is_locked else statement)
    if batch is None:
        raise NotFoundError("Change not found.")
    return batch


_ACTIVE_CONDITION = or_(*(AlertBatch.state == state for state in _ACTIVE_STATES))
#: Condition that is true if any batch has slices left to process.
BATCHES_ARE_DUE = exists().where(_ACTIVE_CONDITION)


def build_next_batch_query() -> Select[AlertBatch]:
    """Return a query for the oldest batch that is in progress."""
    return select(AlertBatch).where(_ACTIVE_CONDITION).order_by(AlertBatch.id).limit(1)


def build_batch_view(batch: AlertBatch, *, session: Session, now: datetime) -> BatchView:
    """Convert the database row of a batch to a view."""
    path = None
    if batch.project_id is not None:
        path = session.scalar(select(Project.path).where(Project.id == batch.project_id))
    is_recent = batch.created_at > now - BATCH_UNDO_PERIOD
    can_be_undone = batch.state == BatchState.DONE.value and bool(batch.changed) and is_recent
    stored = get_column_values(batch, BatchView)
    return BatchView(**stored, project_path=path, can_be_undone=can_be_undone)


def build_changeable_projects_query(
    user_id: int, *, session: Session, now: datetime
) -> Select[int]:
    """Return a query for the IDs of the projects in which a user may change alerts."""
    viewer = Viewer(user_id=user_id, today=now.date())
    return exclude_archived_projects(
        build_member_projects_query(viewer, session=session, ability=Ability.ADMIN_ALERTS)
    )


def finish_batch(batch: AlertBatch) -> None:
    """Set the state of a batch to DONE, or to UNDONE after an undo."""
    is_undone = batch.state == BatchState.UNDOING.value
    batch.state = (BatchState.UNDONE if is_undone else BatchState.DONE).value


def prune_batches(*, session: Session, now: datetime, between: Callable[[], None]) -> int:
    """Delete batches that can no longer be undone, in slices.

    Return the number of deleted batches. `between` is called after each slice.
    """
    old = select(AlertBatch.id).where(AlertBatch.created_at < now - _RETENTION_PERIOD)
    ids = session.scalars(old).all()
    key = tuple_(AlertBatchItem.batch_id, AlertBatchItem.alert_id)
    columns = (AlertBatchItem.batch_id, AlertBatchItem.alert_id)
    for batch_id in ids:
        of_batch = select(*columns).where(AlertBatchItem.batch_id == batch_id)
        while found := session.execute(of_batch.limit(_MAX_ITEMS_PER_DELETE)).all():
            session.execute(
                build_bulk_delete(AlertBatchItem).where(key.in_([tuple(row) for row in found]))
            )
            between()
        session.execute(delete(AlertBatch).where(AlertBatch.id == batch_id))
        between()
    return len(ids)


def change_selected_alerts(
    order: BatchRequest, selected: Sequence[int], *, session: Session, now: datetime
) -> tuple[BatchView, StatusChangeResult]:
    """Change the status of alerts selected by number in one project, or by ID across projects."""
    if len(selected) > MAX_ALERTS_PER_CHANGE:
        raise InvalidError(f"Select at most {MAX_ALERTS_PER_CHANGE} alerts.", field="iids")
    batch = build_batch(order, now)
    by_project = _find_changeable_alerts(order, selected, session=session, now=now)
    result = _change_by_project(by_project, order.change, session=session, now=now)
    session.add(batch)
    session.flush()  # The flush assigns the ID.
    _record_result(batch, result, session=session)
    return build_batch_view(batch, session=session, now=now), result


def change_all_matching_alerts(
    order: BatchRequest,
    wanted: AlertFilter,
    *,
    path: str | None,
    session: Session,
    now: datetime,
) -> BatchView:
    """Start changing all alerts that currently match a filter, and process the first slice.

    The worker processes the other slices. `path` restricts a filter across all projects to one
    project.
    """
    batch = build_batch(order, now, state=BatchState.RUNNING)
    batch.filter = _serialize_filter(wanted, path)
    batch.newest_alert_id = session.scalar(select(func.max(Alert.id))) or 0
    batch.matched = count_matching_alerts(
        _load_filter(batch, session=session, now=now), session=session
    )
    session.add(batch)
    session.flush()  # The flush assigns the ID.
    _change_batch_slice(batch, order.change, session=session, now=now)
    return build_batch_view(batch, session=session, now=now)


def get_batch(batch_id: int, user_id: int, *, session: Session, now: datetime) -> BatchView:
    """Return a user's batch.

    Raise NotFoundError if the user has no such batch.
    """
    return build_batch_view(
        get_batch_row(batch_id, user_id, session=session), session=session, now=now
    )


def find_last_batch(
    order: BatchRequest, iid: int, *, session: Session, now: datetime
) -> BatchView | None:
    """Return the batch in which the user has just set an alert to this status, or None."""
    found = session.scalar(
        select(AlertBatch)
        .join(AlertBatchItem, AlertBatchItem.batch_id == AlertBatch.id)
        .join(Alert, Alert.id == AlertBatchItem.alert_id)
        .where(
            *(Alert.project_id == order.project_id, Alert.iid == iid),
            *(AlertBatch.user_id == order.by.id, AlertBatch.status == order.status),
            *(
                AlertBatch.state == BatchState.DONE.value,
                AlertBatch.created_at > now - DOUBLE_SUBMISSION_WINDOW,
            ),
        )
        .order_by(AlertBatch.id.desc())
        .limit(1)
    )
    return None if found is None else build_batch_view(found, session=session, now=now)


def start_undo(batch_id: int, by: EventActor, *, session: Session, now: datetime) -> BatchView:
    """Start restoring the previous statuses of a batch, unless the undo was already requested.

    Raise NotFoundError if the user has no such batch, and InvalidError if it cannot be undone.
    """
    batch = get_batch_row(batch_id, by.id, session=session, is_locked=True)
    view = build_batch_view(batch, session=session, now=now)
    if batch.state in _UNDO_STATES:
        return view
    if not view.can_be_undone:
        message = "This change cannot be undone. It is still in progress, or older than a day."
        raise InvalidError(message)
    batch.state = BatchState.UNDOING.value
    _undo_batch_slice(batch, by, session=session, now=now)
    return build_batch_view(batch, session=session, now=now)


def process_next_batch_slice(*, session: Session, now: datetime) -> int | None:
    """Process the next slice of the oldest batch in progress, and return the batch's ID.

    Return None if no batch is in progress. Several workers can share the work: each worker locks
    its batch, and other workers skip locked batches.
    """
    batch = session.scalar(
        build_next_batch_query().with_for_update(skip_locked=True, of=AlertBatch)
    )
    if batch is None:
        return None
    by = EventActor(id=batch.user_id, name=session.get_one(User, batch.user_id).username)
    if batch.state == BatchState.UNDOING.value:
        _undo_batch_slice(batch, by, session=session, now=now)
    else:
        change = StatusChange(status=batch.status, by=by)
        _change_batch_slice(batch, change, session=session, now=now)
    return batch.id


def stop_oldest_batch(*, session: Session) -> None:
    """Stop the oldest batch in progress without processing its remaining slices."""
    batch = session.scalar(
        build_next_batch_query().with_for_update(skip_locked=True, of=AlertBatch)
    )
    if batch is not None:
        finish_batch(batch)


def _find_changeable_alerts(
    order: BatchRequest, selected: Sequence[int], *, session: Session, now: datetime
) -> Mapping[int, list[int]]:
    """Return the numbers of the selected alerts that the user may change, by project."""
    if order.project_id is not None:
        return {order.project_id: list(selected)}
    mine = build_changeable_projects_query(order.by.id, session=session, now=now)
    rows = session.execute(
        # `+ 0` prevents the planner from using the project index, since the list of IDs is more
        # selective.
        select(Alert.project_id, Alert.iid).where(
            Alert.id.in_(selected), (Alert.project_id + 0).in_(mine)
        )
    )
    return _group_by_project((row.project_id, row.iid) for row in rows)


def _group_by_project(pairs: Iterable[tuple[int, int]]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for project_id, iid in pairs:
        found[project_id].append(iid)
    return found


def _change_by_project(
    by_project: Mapping[int, list[int]],
    change: StatusChange,
    *,
    among: Sequence[str] = STATUSES,
    session: Session,
    now: datetime,
) -> StatusChangeResult:
    """Change alerts one project at a time, in the order of project IDs, to prevent deadlocks."""
    results = []
    for project_id in sorted(by_project):
        lock_project_alerts(project_id, session=session)
        iids = by_project[project_id]
        results.append(
            change_locked_alerts(project_id, iids, change, among=among, session=session, now=now)
        )
    return StatusChangeResult(
        done=tuple(iid for result in results for iid in result.done),
        unchanged=tuple(iid for result in results for iid in result.unchanged),
        conflicts=tuple(pair for result in results for pair in result.conflicts),
        made=tuple(made for result in results for made in result.made),
    )


def _record_result(batch: AlertBatch, result: StatusChangeResult, *, session: Session) -> None:
    """Store the previous states of changed alerts, and update the counts of the batch."""
    batch.changed += len(result.made)
    batch.left += len(result.conflicts)
    rows = [{"batch_id": batch.id, **vars(made)} for made in result.made]
    if rows:
        session.execute(insert(AlertBatchItem), rows)


def _change_batch_slice(
    batch: AlertBatch, change: StatusChange, *, session: Session, now: datetime
) -> None:
    wanted = _load_filter(batch, session=session, now=now)
    part = AlertSlice(
        size=MAX_ALERTS_PER_CHANGE, following=parse_sort_cursor(batch.cursor, NEWEST_FIRST)
    )
    page = list_alerts(wanted, part, session=session)
    found = _group_by_project((row.project_id, row.iid) for row in page.items)
    result = _change_by_project(found, change, among=wanted.statuses, session=session, now=now)
    _record_result(batch, result, session=session)
    batch.cursor = None if page.next_before is None else str(page.next_before)
    if batch.cursor is None:
        finish_batch(batch)


def _serialize_filter(wanted: AlertFilter, path: str | None) -> dict[str, Any]:
    return {
        "statuses": list(wanted.statuses),
        "search": wanted.search,
        "severity": wanted.severity.value if wanted.severity else None,
        "environment": wanted.environment,
        "service": wanted.service,
        "assignee": wanted.assignee,
        "integration_id": wanted.integration_id,
        "path": path,
    }


def _load_filter(batch: AlertBatch, *, session: Session, now: datetime) -> AlertFilter:
    """Return the batch's filter, limited to projects in which its user may still change alerts."""
    stored = dict(batch.filter or {})
    path, severity = stored.pop("path"), stored.pop("severity")
    wanted = AlertFilter(
        project_id=batch.project_id or 0,
        newest_id=batch.newest_alert_id,
        severity=Severity(severity) if severity else None,
        **{**stored, "statuses": tuple(stored["statuses"])},
    )
    if batch.project_id is not None:
        return wanted
    viewer = Viewer(user_id=batch.user_id, today=now.date())
    ability = Ability.ADMIN_ALERTS
    mine = build_member_projects_query(viewer, session=session, ability=ability, path=path)
    return replace(wanted, projects=exclude_archived_projects(mine))


def _undo_batch_slice(
    batch: AlertBatch, by: EventActor, *, session: Session, now: datetime
) -> None:
    items = session.scalars(
        select(AlertBatchItem)
        .where(AlertBatchItem.batch_id == batch.id, AlertBatchItem.alert_id > batch.undone_to)
        .order_by(AlertBatchItem.alert_id)
        .limit(MAX_ALERTS_PER_CHANGE)
    ).all()
    if items:
        before = {item.alert_id: item for item in items}
        restored = _restore_statuses(batch, before, by, session=session, now=now)
        batch.restored += restored
        batch.kept += len(items) - restored
        batch.undone_to = items[-1].alert_id
    if len(items) < MAX_ALERTS_PER_CHANGE:
        finish_batch(batch)


def _restore_statuses(
    batch: AlertBatch,
    before: Mapping[int, AlertBatchItem],
    by: EventActor,
    *,
    session: Session,
    now: datetime,
) -> int:
    """Restore the previous statuses of alerts that have not been changed since the batch.

    Return the number of restored alerts.
    """
    is_meant: list[ColumnElement[bool]] = [Alert.id.in_(before)]
    if batch.project_id is None:
        mine = build_changeable_projects_query(batch.user_id, session=session, now=now)
        is_meant.append((Alert.project_id + 0).in_(mine))
    projects = session.scalars(select(Alert.project_id).where(*is_meant).distinct())
    for project_id in sorted(projects):
        lock_project_alerts(project_id, session=session)
    alerts = session.scalars(
        select(Alert)
        .where(*is_meant, Alert.status == batch.status)
        .order_by(Alert.id)
        .with_for_update()
    ).all()
    notes = find_last_status_changes([alert.id for alert in alerts], session=session)
    last = {alert_id: note.id for alert_id, note in notes.items()}
    wanted = {
        alert: before[alert.id].old_status
        for alert in alerts
        if last.get(alert.id) == before[alert.id].note_id
    }
    change = StatusChange(status=batch.status, by=by, via=_UNDO_VIA)
    made, refused = set_statuses(wanted, change, session=session, now=now)
    for alert in wanted.keys() - refused:
        alert.ended_at = before[alert.id].old_ended_at
    return len(made)
