"""Removes alerts: one that a maintainer deletes, and resolved ones that are kept no longer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.alerts.storing.lifecycle import RESOLVED
from domain.errors import NotFoundError
from models import Alert, Project

_SLICE = 500


@dataclass(frozen=True, kw_only=True)
class DeletedAlert:
    """What is left to say of an alert that was deleted."""

    iid: int
    title: str
    status: str


def delete_alert(project_id: int, iid: int, *, session: Session) -> DeletedAlert:
    """Delete an alert with its activity and occurrences; raise NotFoundError.

    Its deliveries stay in their log as long as others do.
    """
    alert = session.scalar(
        select(Alert).where(Alert.project_id == project_id, Alert.iid == iid).with_for_update()
    )
    if alert is None:
        message = f"Alert {iid} not found in this project."
        raise NotFoundError(message)
    deleted = DeletedAlert(iid=iid, title=alert.title, status=alert.status)
    session.execute(delete(Alert).where(Alert.id == alert.id))
    return deleted


def remove_resolved(*, before: datetime, session: Session, between: Callable[[], None]) -> int:
    """Remove the alerts that were resolved before a time, and return how many.

    `between` is called after each slice; the caller commits there, so that locks are short.
    """
    total = 0
    for project_id in session.scalars(select(Project.id)).all():
        while ids := _resolved(project_id, before, session=session):
            session.execute(
                delete(Alert).where(Alert.id.in_(ids)).execution_options(synchronize_session=False)
            )
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
