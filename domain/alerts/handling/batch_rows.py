"""The rows of batches: changes of many alerts by one user (`batches.py`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Select, delete, exists, or_, select, tuple_
from sqlalchemy.orm import Session

from domain.access.abilities import Ability
from domain.alerts.handling.status import StatusChange
from domain.alerts.listing.watched_projects import projects_of_member, taking_changes
from domain.audit.events import Actor
from domain.errors import NotFoundError
from domain.projects.views import Viewer
from models import AlertBatch, AlertBatchItem, Project

#: How long a batch can be undone.
UNDONE_WITHIN = timedelta(days=1)
_KEPT_FOR = 2 * UNDONE_WITHIN
_ITEMS_AT_ONCE = 500


class BatchState(StrEnum):
    """How far a batch is."""

    RUNNING = "running"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"


_UNDER_WAY = (BatchState.RUNNING.value, BatchState.UNDOING.value)


@dataclass(frozen=True, kw_only=True)
class BatchView:
    """What became of a batch so far."""

    id: int
    state: BatchState
    status: str
    #: None for alerts of all projects of the user.
    project_path: str | None
    #: The arguments of the list that the user came from.
    list_query: str
    #: The number that matched when the user confirmed; None if there were too many to count.
    matched: int | None
    changed: int
    #: The number that could not get the status.
    left: int
    restored: int
    #: The number that somebody changed since, or that could not get their status again.
    kept: int
    can_be_undone: bool

    @property
    def is_under_way(self) -> bool:
        """Whether the worker has not finished it."""
        return self.state.value in _UNDER_WAY


@dataclass(frozen=True, kw_only=True)
class BatchOrder:
    """Who gives which status to alerts, in which list."""

    status: str
    by: Actor
    #: None for alerts of all projects of the user.
    project_id: int | None
    list_query: str

    @property
    def change(self) -> StatusChange:
        """The change of one alert; raises InvalidError for an unknown status."""
        return StatusChange(status=self.status, by=self.by)


def new_batch(
    order: BatchOrder, now: datetime, *, state: BatchState = BatchState.DONE
) -> AlertBatch:
    """Return the row of a batch, which is not stored yet."""
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


def own_batch(
    batch_id: int, user_id: int, *, session: Session, is_locked: bool = False
) -> AlertBatch:
    """Return the batch of a user, or raise NotFoundError."""
    statement = select(AlertBatch).where(AlertBatch.id == batch_id, AlertBatch.user_id == user_id)
    batch = session.scalar(statement.with_for_update() if is_locked else statement)
    if batch is None:
        message = "Change not found."
        raise NotFoundError(message)
    return batch


_is_under_way = or_(*(AlertBatch.state == state for state in _UNDER_WAY))
#: Whether a batch waits for its next slice.
BATCHES_ARE_DUE = exists().where(_is_under_way)


def next_batch() -> Select[AlertBatch]:
    """Select the oldest batch under way."""
    return select(AlertBatch).where(_is_under_way).order_by(AlertBatch.id).limit(1)


def view_of(batch: AlertBatch, *, session: Session, now: datetime) -> BatchView:
    """Return the view of a batch."""
    path = None
    if batch.project_id is not None:
        path = session.scalar(select(Project.path).where(Project.id == batch.project_id))
    is_recent = batch.created_at > now - UNDONE_WITHIN
    return BatchView(
        id=batch.id,
        state=BatchState(batch.state),
        status=batch.status,
        project_path=path,
        list_query=batch.list_query,
        matched=batch.matched,
        changed=batch.changed,
        left=batch.left,
        restored=batch.restored,
        kept=batch.kept,
        can_be_undone=batch.state == BatchState.DONE.value and bool(batch.changed) and is_recent,
    )


def projects_of(user_id: int, *, session: Session, now: datetime) -> Select[int]:
    """Select the ids of the projects in which a user may change alerts."""
    viewer = Viewer(user_id=user_id, today=now.date())
    return taking_changes(projects_of_member(viewer, session=session, ability=Ability.ADMIN_ALERTS))


def finish_batch(batch: AlertBatch) -> None:
    """Note that there is nothing more to do."""
    is_undone = batch.state == BatchState.UNDOING.value
    batch.state = (BatchState.UNDONE if is_undone else BatchState.DONE).value


def prune_batches(*, session: Session, now: datetime, between: Callable[[], None]) -> int:
    """Remove batches that cannot be undone any more, in slices; return how many."""
    old = select(AlertBatch.id).where(AlertBatch.created_at < now - _KEPT_FOR)
    ids = session.scalars(old).all()
    key = tuple_(AlertBatchItem.batch_id, AlertBatchItem.alert_id)
    columns = (AlertBatchItem.batch_id, AlertBatchItem.alert_id)
    for batch_id in ids:
        of_batch = select(*columns).where(AlertBatchItem.batch_id == batch_id)
        while found := session.execute(of_batch.limit(_ITEMS_AT_ONCE)).all():
            session.execute(
                delete(AlertBatchItem)
                .where(key.in_([tuple(row) for row in found]))
                .execution_options(synchronize_session=False)
            )
            between()
        session.execute(delete(AlertBatch).where(AlertBatch.id == batch_id))
        between()
    return len(ids)
