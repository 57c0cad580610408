"""Reads incidents, and locks them for a change."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from domain.errors import NotFoundError
from domain.incidents.fields import MOST_NAMED_ALERTS, IncidentStatus, severity_of
from domain.incidents.types import Incident, IncidentPerson
from models import Alert, IncidentAlert, IncidentAssignee, IncidentCounter, User
from models import Incident as IncidentRow


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


def locked_incident(project_id: int, iid: int, *, session: Session) -> IncidentRow:
    """Lock the incidents of a project and return one of them, or raise NotFoundError."""
    lock_incidents(project_id, session=session)
    return get_row(project_id, iid, session=session)


def get_incident_id(project_id: int, iid: int, *, session: Session) -> int:
    """Return the id of the row of an incident, or raise NotFoundError."""
    found = session.scalar(
        select(IncidentRow.id).where(IncidentRow.project_id == project_id, IncidentRow.iid == iid)
    )
    if found is None:
        raise _not_found(iid)
    return found


def get_row(project_id: int, iid: int, *, session: Session) -> IncidentRow:
    """Return the row of an incident, or raise NotFoundError."""
    found = session.scalars(
        select(IncidentRow)
        .where(IncidentRow.project_id == project_id, IncidentRow.iid == iid)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if found is None:
        raise _not_found(iid)
    return found


def _not_found(iid: int) -> NotFoundError:
    return NotFoundError(f"Incident {iid} not found in this project.")


def incidents_of(rows: Sequence[IncidentRow], *, url: str, session: Session) -> list[Incident]:
    """Return incidents as all faces see them, with a few queries for all of them.

    The URL is that of the list, without a slash at its end.
    """
    session.flush()
    assignees = _assignees_of([row.id for row in rows], session=session)
    alerts = _alerts_of(rows, session=session)
    return [
        Incident(
            id=row.id,
            iid=row.iid,
            project_id=row.project_id,
            title=row.title,
            description=row.description,
            severity=severity_of(row.urgency),
            status=IncidentStatus(row.status),
            assignees=tuple(assignees.get(row.id, ())),
            alerts=tuple(alerts.get(row.id, ())),
            alerts_count=row.alerts,
            close_when_resolved=row.closes_when_resolved,
            rule_id=row.rule_id,
            author=IncidentPerson(id=row.author_id, username=row.author_name)
            if row.author_name
            else None,
            created_at=row.created_at,
            updated_at=row.updated_at,
            acknowledged_at=row.acknowledged_at,
            resolved_at=row.resolved_at,
            web_url=f"{url}/{row.iid}",
        )
        for row in rows
    ]


def _assignees_of(ids: Iterable[int], *, session: Session) -> Mapping[int, list[IncidentPerson]]:
    found: dict[int, list[IncidentPerson]] = defaultdict(list)
    rows = session.execute(
        select(IncidentAssignee.incident_id, User.id, User.username)
        .join(User, User.id == IncidentAssignee.user_id)
        .where(IncidentAssignee.incident_id.in_(ids))
        .order_by(User.username_key, User.id)
    )
    for incident_id, user_id, username in rows:
        found[incident_id].append(IncidentPerson(id=user_id, username=username))
    return found


def _alerts_of(rows: Sequence[IncidentRow], *, session: Session) -> Mapping[int, list[int]]:
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
