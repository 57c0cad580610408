"""Alerts that wait: they open an incident once no silence or maintenance window matches them."""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import OPEN_STATUSES
from domain.database.upsert import insert_into
from models import Alert, IncidentWaiting, Project


def wait(project_id: int, alert_ids: Collection[int], *, session: Session) -> None:
    """Let alerts wait; those that wait already go on to."""
    if alert_ids:
        rows = [{"project_id": project_id, "alert_id": each} for each in sorted(alert_ids)]
        statement = insert_into(IncidentWaiting, session=session).on_conflict_do_nothing()
        session.execute(statement, rows)


def wait_no_more(alert_ids: Collection[int], *, session: Session) -> None:
    """Forget alerts that waited: they opened an incident, are over, or meet no rule any more."""
    if alert_ids:
        session.execute(
            delete(IncidentWaiting)
            .where(IncidentWaiting.alert_id.in_(alert_ids))
            .execution_options(synchronize_session=False)
        )


def waiting_projects(*, session: Session) -> Sequence[tuple[int, str]]:
    """Return the ids and paths of projects with alerts that wait, in the order of the ids.

    Those of archived projects wait until the project is back.
    """
    rows = session.execute(
        select(Project.id, Project.path)
        .where(
            Project.id.in_(select(IncidentWaiting.project_id)),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
        .order_by(Project.id)
    )
    return [(row.id, row.path) for row in rows]


def waiting_alerts(
    project_id: int, *, after: int, limit: int, session: Session
) -> Sequence[tuple[int, bool]]:
    """Return the ids of alerts that wait, from one on, and whether each is open."""
    rows = session.execute(
        select(Alert.id, Alert.status)
        .join(IncidentWaiting, IncidentWaiting.alert_id == Alert.id)
        .where(IncidentWaiting.project_id == project_id, IncidentWaiting.alert_id > after)
        .order_by(IncidentWaiting.alert_id)
        .limit(limit)
    )
    return [(row.id, row.status in OPEN_STATUSES) for row in rows]
