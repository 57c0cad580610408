"""Removes the data of deleted groups and projects in batches, to keep locks short.

Groups and projects are marked as deleted first (`domain/projects/deletion.py`). If a run is
interrupted, the next run continues.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from domain.core.database.bulk_statements import build_bulk_delete
from models import (
    ALERT_DAY_ADDITIONS,
    Alert,
    AlertDay,
    AlertNote,
    CommitStatus,
    Delivery,
    Deployment,
    Environment,
    Group,
    Heartbeat,
    HeartbeatPing,
    Incident,
    IncidentAlert,
    IncidentFingerprint,
    IncidentNote,
    Occurrence,
    Project,
    ProjectRelease,
    RegistryManifest,
    RegistryRemoval,
    RegistryRepository,
    RegistryTag,
    ReleaseLink,
    WebhookDelivery,
    WebhookIncidentChange,
)

#: Maximum number of rows, and maximum number of alerts or incidents, that are removed in one batch.
_BATCH_SIZE, _ALERTS_PER_BATCH = 500, 100
#: Maximum time for which a deleted project waits for an unavailable registry.
_MAX_REGISTRY_WAIT = timedelta(days=30)
#: Function that removes the files of a project, given its ID and creation time.
RemoveFilesFunction = Callable[[int, datetime], object]
CommitBatchFunction = Callable[[], None]


def remove_deleted_namespaces(
    *,
    remove_files: RemoveFilesFunction,
    session: Session,
    commit_batch: CommitBatchFunction,
    now: datetime,
) -> dict[str, int]:
    """Remove deleted projects and groups, and return the number of each.

    `commit_batch` commits a batch. A project is kept until its images are deleted from the
    container registry, because that deletion requires the project's data. Until then, the data also
    prevents others from accessing the images.
    """
    images = (
        select(RegistryRemoval.id)
        .join(RegistryRepository, RegistryRepository.id == RegistryRemoval.repository_id)
        .where(RegistryRepository.project_id == Project.id)
    )
    deleted = select(Project.id, Project.created_at).where(
        Project.deleted_at.is_not(None),
        or_(~exists(images), Project.deleted_at < now - _MAX_REGISTRY_WAIT),
    )
    removed = 0
    for project_id, created_at in session.execute(deleted.order_by(Project.id)).all():
        commit_batch()
        remove_files(project_id, created_at)
        _remove_namespace_contents(project_id, session=session, commit_batch=commit_batch)
        removed += _remove_row(Project.id, project_id, session=session)
        commit_batch()
    return {"projects": removed, "groups": _remove_groups(session, commit_batch)}


def _remove_row(key: InstrumentedAttribute[int], row_id: int, *, session: Session) -> int:
    """Delete a row unless it is the newest row of the table, whose ID SQLite would reuse.

    Return the number of deleted rows.
    """
    newest = select(func.max(aliased(key.class_).id)).scalar_subquery()
    found = session.scalars(select(key).where(key == row_id, key < newest)).all()
    _delete_matching_rows(key.class_, key.in_(found), session)
    return len(found)


def _remove_namespace_contents(
    project_id: int, *, session: Session, commit_batch: CommitBatchFunction
) -> None:
    """Remove the project's rows from large tables.

    Other rows are deleted with the project.
    """
    _remove_incidents(project_id, session=session, commit_batch=commit_batch)
    _remove_alerts(project_id, session=session, commit_batch=commit_batch)
    for keys, condition in _list_dependent_tables(project_id):
        _remove_in_batches(keys, condition, session=session, commit_batch=commit_batch)
    waiting = ALERT_DAY_ADDITIONS.c.project_id == project_id
    session.execute(delete(ALERT_DAY_ADDITIONS).where(waiting))
    commit_batch()


def _list_dependent_tables(
    project_id: int,
) -> tuple[tuple[Sequence[InstrumentedAttribute[Any]], ColumnElement[bool]], ...]:
    """Return the key columns of each large table, and a condition for the project's rows.

    The tables are ordered so that referencing rows are removed first.
    """
    releases = select(ProjectRelease.id).where(ProjectRelease.project_id == project_id)
    repositories = select(RegistryRepository.id).where(RegistryRepository.project_id == project_id)
    heartbeats = select(Heartbeat.id).where(Heartbeat.project_id == project_id)
    day = (AlertDay.project_id, AlertDay.day, AlertDay.environment, AlertDay.severity)
    return (
        ([Delivery.id], Delivery.project_id == project_id),
        ([WebhookDelivery.id], WebhookDelivery.project_id == project_id),
        ([WebhookIncidentChange.id], WebhookIncidentChange.project_id == project_id),
        ([Deployment.id], Deployment.project_id == project_id),
        ([Environment.id], Environment.project_id == project_id),
        ([CommitStatus.id], CommitStatus.project_id == project_id),
        ([ReleaseLink.id], ReleaseLink.release_id.in_(releases)),
        ([ProjectRelease.id], ProjectRelease.project_id == project_id),
        ([RegistryTag.id], RegistryTag.repository_id.in_(repositories)),
        ([RegistryManifest.id], RegistryManifest.repository_id.in_(repositories)),
        ([RegistryRepository.id], RegistryRepository.project_id == project_id),
        ([HeartbeatPing.id], HeartbeatPing.heartbeat_id.in_(heartbeats)),
        ([Heartbeat.id], Heartbeat.project_id == project_id),
        (day, AlertDay.project_id == project_id),
    )


def _remove_incidents(
    project_id: int, *, session: Session, commit_batch: CommitBatchFunction
) -> None:
    some = select(Incident.id).where(Incident.project_id == project_id).limit(_ALERTS_PER_BATCH)
    while ids := session.scalars(some).all():
        # An incident may have thousands of alerts and notes.
        for keys, of_incident in (
            ((IncidentNote.id,), IncidentNote.incident_id),
            ((IncidentAlert.incident_id, IncidentAlert.alert_id), IncidentAlert.incident_id),
            (
                (IncidentFingerprint.project_id, IncidentFingerprint.fingerprint),
                IncidentFingerprint.incident_id,
            ),
        ):
            _remove_in_batches(
                keys, of_incident.in_(ids), session=session, commit_batch=commit_batch
            )
        _delete_matching_rows(Incident, Incident.id.in_(ids), session)
        commit_batch()


def _remove_alerts(project_id: int, *, session: Session, commit_batch: CommitBatchFunction) -> None:
    some = select(Alert.id).where(Alert.project_id == project_id).limit(_ALERTS_PER_BATCH)
    while ids := session.scalars(some).all():
        # An alert may have a million events, and thousands of notes.
        for keys, of_alert in (
            ((Occurrence.alert_id, Occurrence.delivery_id), Occurrence.alert_id),
            ((AlertNote.id,), AlertNote.alert_id),
        ):
            _remove_in_batches(keys, of_alert.in_(ids), session=session, commit_batch=commit_batch)
        _delete_matching_rows(Alert, Alert.id.in_(ids), session)
        commit_batch()


def _remove_in_batches(
    keys: Sequence[InstrumentedAttribute[Any]],
    condition: ColumnElement[bool],
    *,
    session: Session,
    commit_batch: CommitBatchFunction,
) -> None:
    some = select(*keys).where(condition).limit(_BATCH_SIZE)
    while found := session.execute(some).all():
        matches = tuple_(*keys).in_([tuple(row) for row in found])
        if len(keys) == 1:
            matches = keys[0].in_([row[0] for row in found])
        _delete_matching_rows(keys[0].class_, matches, session)
        commit_batch()


def _remove_groups(session: Session, commit_batch: CommitBatchFunction) -> int:
    """Delete empty groups that are marked as deleted, innermost first.

    Return the number of deleted groups.
    """
    below, removed = aliased(Group), 0
    is_empty = ~exists().where(Project.group_id == Group.id) & ~exists().where(
        below.parent_id == Group.id
    )
    gone = select(Group.id).where(Group.deleted_at.is_not(None), is_empty).limit(_BATCH_SIZE)
    while found := sum(
        _remove_row(Group.id, group_id, session=session) for group_id in session.scalars(gone).all()
    ):
        commit_batch()
        removed += found
    return removed


def _delete_matching_rows(table: Any, condition: Any, session: Session) -> None:
    session.execute(build_bulk_delete(table).where(condition))
