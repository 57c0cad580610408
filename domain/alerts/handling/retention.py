"""What time does to alerts: silent ones are resolved, and resolved ones removed."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import BY_ITSELF, NoteKind, add_entry
from domain.alerts.handling.status import lock_alerts_of
from domain.alerts.storing.lifecycle import RESOLVED, TRIGGERED
from domain.core.database.rows import delete_rows, update_rows
from domain.core.hosts import reachable_since
from models import Alert, Integration, Project

_SLICE = 500
#: Senders repeat what could not be delivered for a moment.
_SHORT_INTERRUPTION = timedelta(minutes=1)
#: An ignored alert stays ignored.
_WAITING = (TRIGGERED, "acknowledged")


def resolve_silent(*, session: Session, now: datetime, between: Callable[[], None]) -> int:
    """Resolve these alerts and return how many; `between` is called after each slice.

    Time in which no report could arrive says nothing: the wait begins again when it is over.
    """
    since = reachable_since(longer_than=_SHORT_INTERRUPTION, session=session, now=now)
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
        while resolved := _resolve_some(integration_id, project_id, wait, session, now):
            between()
            total += resolved
    return total


def _resolve_some(
    integration_id: int, project_id: int, minutes: int, session: Session, now: datetime
) -> int:
    lock_alerts_of(project_id, session=session)
    # Asked for together with the lock: an alert that was reported meanwhile is not silent.
    statement = (
        select(Alert.id)
        .where(
            Alert.integration_id == integration_id,
            Alert.status.in_(_WAITING),
            Alert.last_event_at < now - timedelta(minutes=minutes),
        )
        .order_by(Alert.id)
        .limit(_SLICE)
        .with_for_update()
    )
    ids = list(session.scalars(statement))
    if not ids:
        return 0
    # An alert that starts in the future does not end before its start.
    ended_at = case((Alert.started_at > now, Alert.started_at), else_=now)
    session.execute(
        update_rows(Alert).where(Alert.id.in_(ids)).values(status=RESOLVED, ended_at=ended_at)
    )
    for alert_id in ids:
        entry = add_entry(alert_id, NoteKind.STATUS, RESOLVED, by=None, session=session, now=now)
        entry.via = f"{BY_ITSELF} after {minutes:,} minutes without a report"
    session.flush()
    return len(ids)


def remove_resolved(*, before: datetime, session: Session, between: Callable[[], None]) -> int:
    """Remove the alerts that were resolved before a time, and return how many.

    `between` is called after each slice; the caller commits there, so that locks are short.
    """
    total = 0
    for project_id in session.scalars(select(Project.id)).all():
        while ids := _resolved(project_id, before, session=session):
            session.execute(delete_rows(Alert).where(Alert.id.in_(ids)))
            between()
            total += len(ids)
    return total


def _resolved(project_id: int, before: datetime, *, session: Session) -> list[int]:
    # No alert ends before its start, so the index on status and start finds them.
    statement = (
        select(Alert.id)
        .where(
            Alert.project_id == project_id,
            Alert.status == RESOLVED,
            Alert.started_at < before,
            Alert.ended_at < before,
        )
        .order_by(Alert.started_at, Alert.id)
        .limit(_SLICE)
    )
    return list(session.scalars(statement))
