"""Resolves alerts without recent reports, and deletes alerts that were resolved long ago."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import AUTOMATIC_VIA, ActivityEntryKind, add_activity_entry
from domain.alerts.handling.status import lock_project_alerts
from domain.alerts.storing.lifecycle import RESOLVED, TRIGGERED
from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.hosts import find_reachable_since
from models import Alert, Integration, Project

_MAX_ROWS_PER_STATEMENT = 500
#: Longest interruption after which senders still retry undelivered reports.
_MAX_TOLERATED_INTERRUPTION = timedelta(minutes=1)
#: Statuses that are resolved automatically. Ignored alerts stay ignored.
_RESOLVABLE_STATUSES = (TRIGGERED, "acknowledged")


def resolve_stale_alerts(*, session: Session, now: datetime, between: Callable[[], None]) -> int:
    """Resolve alerts that were not reported during the period set in their integration.

    Return the number of resolved alerts. `between` is called after each slice. If the receivers
    were interrupted for more than a minute, the period starts again, since no reports could arrive.
    """
    since = find_reachable_since(longer_than=_MAX_TOLERATED_INTERRUPTION, session=session, now=now)
    if since is None:
        return 0
    minutes = Integration.resolve_after_minutes
    waiting = select(Integration.id, Integration.project_id, minutes)
    total = 0
    rows: Sequence[Any] = session.execute(waiting.where(minutes.is_not(None))).all()
    for integration_id, project_id, wait in rows:
        if now - since <= timedelta(minutes=wait):
            continue
        between()
        while resolved := _resolve_slice(integration_id, project_id, wait, session, now):
            between()
            total += resolved
    return total


def _resolve_slice(
    integration_id: int, project_id: int, minutes: int, session: Session, now: datetime
) -> int:
    lock_project_alerts(project_id, session=session)
    # The rows are selected and locked in one statement, so that alerts with a new report are not
    # resolved.
    statement = (
        select(Alert.id)
        .where(
            Alert.integration_id == integration_id,
            Alert.status.in_(_RESOLVABLE_STATUSES),
            Alert.last_event_at < now - timedelta(minutes=minutes),
        )
        .order_by(Alert.id)
        .limit(_MAX_ROWS_PER_STATEMENT)
        .with_for_update()
    )
    ids = list(session.scalars(statement))
    if not ids:
        return 0
    # An alert cannot end before its start, which may be in the future.
    ended_at = case((Alert.started_at > now, Alert.started_at), else_=now)
    session.execute(
        build_bulk_update(Alert).where(Alert.id.in_(ids)).values(status=RESOLVED, ended_at=ended_at)
    )
    for alert_id in ids:
        entry = add_activity_entry(
            alert_id, ActivityEntryKind.STATUS, RESOLVED, by=None, session=session, now=now
        )
        entry.via = f"{AUTOMATIC_VIA} after {minutes:,} minutes without a report"
    session.flush()
    return len(ids)


def delete_resolved_alerts(
    *, before: datetime, session: Session, between: Callable[[], None]
) -> int:
    """Delete alerts that were resolved before a given time.

    Return the number of deleted alerts. `between` is called after each slice. It must commit, so
    that locks are held only briefly.
    """
    total = 0
    for project_id in session.scalars(select(Project.id)).all():
        while ids := _find_resolved_ids(project_id, before, session=session):
            session.execute(build_bulk_delete(Alert).where(Alert.id.in_(ids)))
            between()
            total += len(ids)
    return total


def _find_resolved_ids(project_id: int, before: datetime, *, session: Session) -> list[int]:
    # Alerts never end before they start, so the index on status and start finds them.
    statement = (
        select(Alert.id)
        .where(
            Alert.project_id == project_id,
            Alert.status == RESOLVED,
            Alert.started_at < before,
            Alert.ended_at < before,
        )
        .order_by(Alert.started_at, Alert.id)
        .limit(_MAX_ROWS_PER_STATEMENT)
    )
    return list(session.scalars(statement))
