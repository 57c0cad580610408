"""Removes resolved alerts that are kept no longer."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.alerts.storing.lifecycle import RESOLVED
from models import Alert, Project

_SLICE = 500


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
