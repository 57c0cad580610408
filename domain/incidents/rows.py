"""Reads incidents into views, and locks them for a change."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from domain.errors import NotFoundError
from domain.incidents.views import (
    MOST_NAMED_ALERTS,
    IncidentStatus,
    IncidentView,
    Person,
    severity_of,
)
from models import Alert, Incident, IncidentAlert, IncidentAssignee, IncidentCounter, User


def lock_incidents(project_id: int, *, session: Session) -> IncidentCounter:
    """Lock the incidents of a project until the transaction ends, and return their counter.

    Every change of an incident takes this lock before any lock on alerts, so two cannot deadlock.
    """
    insert = insert_into(IncidentCounter, session=session)
    row = {"project_id": project_id, "last_iid": 0}
    session.execute(insert.values(row).on_conflict_do_nothing())
    return session.scalars(
        select(IncidentCounter)
        .where(IncidentCounter.project_id == project_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


def locked_incident(project_id: int, iid: int, *, session: Session) -> Incident:
    """Lock the incidents of a project and return one of them, or raise NotFoundError."""
    lock_incidents(project_id, session=session)
    return _get(project_id, iid, session=session)


def get_incident(project_id: int, iid: int, *, session: Session) -> IncidentView:
    """Return an incident, or raise NotFoundError."""
    (view,) = views_of([_get(project_id, iid, session=session)], session=session)
    return view


def get_incident_id(project_id: int, iid: int, *, session: Session) -> int:
    """Return the id of the row of an incident, or raise NotFoundError."""
    found = session.scalar(
        select(Incident.id).where(Incident.project_id == project_id, Incident.iid == iid)
    )
    if found is None:
        raise _not_found(iid)
    return found


def _get(project_id: int, iid: int, *, session: Session) -> Incident:
    found = session.scalars(
        select(Incident)
        .where(Incident.project_id == project_id, Incident.iid == iid)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if found is None:
        raise _not_found(iid)
    return found


def _not_found(iid: int) -> NotFoundError:
    return NotFoundError(f"Incident {iid} not found in this project.")


def views_of(rows: Sequence[Incident], *, session: Session) -> list[IncidentView]:
    """Return the views of rows, with a few queries for all of them."""
    session.flush()
    assignees = _assignees_of([row.id for row in rows], session=session)
    alerts = _alerts_of(rows, session=session)
    return [_view(row, assignees.get(row.id, ()), alerts.get(row.id, ())) for row in rows]


def _view(row: Incident, assignees: Sequence[Person], alerts: Sequence[int]) -> IncidentView:
    return IncidentView(
        id=row.id,
        iid=row.iid,
        project_id=row.project_id,
        title=row.title,
        description=row.description,
        severity=severity_of(row.urgency),
        status=IncidentStatus(row.status),
        assignees=tuple(assignees),
        alerts=tuple(alerts),
        alert_count=row.alerts,
        closes_when_resolved=row.closes_when_resolved,
        author=Person(row.author_id, row.author_name) if row.author_name else None,
        rule_id=row.rule_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        acknowledged_at=row.acknowledged_at,
        resolved_at=row.resolved_at,
    )


def _assignees_of(ids: Iterable[int], *, session: Session) -> Mapping[int, list[Person]]:
    found: dict[int, list[Person]] = defaultdict(list)
    rows = session.execute(
        select(IncidentAssignee.incident_id, User.id, User.username)
        .join(User, User.id == IncidentAssignee.user_id)
        .where(IncidentAssignee.incident_id.in_(ids))
        .order_by(User.username_key, User.id)
    )
    for incident_id, user_id, username in rows:
        found[incident_id].append(Person(user_id, username))
    return found


def _alerts_of(rows: Sequence[Incident], *, session: Session) -> Mapping[int, list[int]]:
    """Return the numbers of linked alerts; those of an incident of thousands are asked apart."""
    found: dict[int, list[int]] = defaultdict(list)
    small = [row.id for row in rows if 0 < row.alerts <= MOST_NAMED_ALERTS]
    statements = [_numbers().where(IncidentAlert.incident_id.in_(small))] if small else []
    statements += [
        _numbers().where(IncidentAlert.incident_id == row.id).limit(MOST_NAMED_ALERTS)
        for row in rows
        if row.alerts > MOST_NAMED_ALERTS
    ]
    for statement in statements:
        for incident_id, iid in session.execute(statement):
            found[incident_id].append(iid)
    return found


def _numbers() -> Select[int, int]:
    return (
        select(IncidentAlert.incident_id, Alert.iid)
        .join(Alert, Alert.id == IncidentAlert.alert_id)
        .order_by(IncidentAlert.alert_id)
    )
