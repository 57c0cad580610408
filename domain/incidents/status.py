"""The status of incidents: acknowledging, closing and reopening them, with their alerts."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from domain.alerts.handling.status import StatusChange, change_all
from domain.alerts.listing.filters import OPEN_STATUSES as OPEN_ALERTS
from domain.audit.events import Actor
from domain.incidents.fields import OPEN_STATUSES, IncidentStatus
from domain.incidents.links import hold_again, release_fingerprints, stop_following
from domain.incidents.timeline import EntryKind, NewEntry, add_entries
from models import Alert, Incident, IncidentAlert

_RESOLVED = IncidentStatus.RESOLVED.value
#: The alerts that follow an incident into a status, by their own present one.
_FOLLOWING: dict[str, Sequence[str]] = {
    IncidentStatus.TRIGGERED.value: (),
    IncidentStatus.ACKNOWLEDGED.value: ("triggered",),
    _RESOLVED: OPEN_ALERTS,
}


def change_status(
    incident: Incident, status: str, *, by: Actor | None, session: Session, now: datetime
) -> None:
    """Give a locked incident another status, and to its alerts that follow it there.

    Acknowledging it acknowledges its triggered alerts, and closing it resolves those that are open;
    ignored ones stay so. A reopened incident leaves its alerts as they are.
    """
    if incident.status == status:
        return
    old = incident.status
    _set(incident, status, now=now)
    changed = 0
    if _FOLLOWING[status]:
        changed = change_all(
            incident.project_id,
            select(IncidentAlert.alert_id).where(IncidentAlert.incident_id == incident.id),
            StatusChange(status=status, by=by, via=_via(incident, by)),
            among=_FOLLOWING[status],
            session=session,
            now=now,
        )
    _move_fingerprints(incident, old, session=session)
    details = {"old": old, "new": status, "count": changed}
    entry = NewEntry(incident_id=incident.id, kind=EntryKind.STATUS, details=details)
    add_entries([entry], by=by, session=session, now=now)


def _via(incident: Incident, by: Actor | None) -> str:
    """Return how the status came to the alerts, for their activity."""
    return f"with incident #{incident.iid}" + ("" if by else ", on the command line")


def _set(incident: Incident, status: str, *, now: datetime) -> None:
    incident.status = status
    incident.updated_at = now
    incident.resolved_at = now if status == _RESOLVED else None
    if status == IncidentStatus.ACKNOWLEDGED.value:
        incident.acknowledged_at = now
    elif status == IncidentStatus.TRIGGERED.value:
        incident.acknowledged_at = None


def _move_fingerprints(incident: Incident, old: str, *, session: Session) -> None:
    session.flush()
    if incident.status == _RESOLVED:
        release_fingerprints([incident.id], session=session)
        stop_following(incident.project_id, session=session)
    elif old == _RESOLVED:
        hold_again(incident, session=session)


def close_recovered(
    project_id: int, alert_ids: Sequence[int], *, session: Session, now: datetime
) -> Sequence[Incident]:
    """Close those incidents of alerts that are to be closed when all of their alerts are resolved.

    Ignored alerts do not keep one open. The caller has locked the incidents of the project.
    """
    rows = session.scalars(
        select(Incident)
        .where(
            Incident.project_id == project_id,
            Incident.id.in_(
                select(IncidentAlert.incident_id).where(IncidentAlert.alert_id.in_(alert_ids))
            ),
            Incident.status.in_(OPEN_STATUSES),
            Incident.closes_when_resolved.is_(True),
            ~_has_alert(OPEN_ALERTS),
            _has_alert(("resolved",)),
        )
        .order_by(Incident.id)
        .execution_options(populate_existing=True)
    ).all()
    if not rows:
        return rows
    entries = []
    for row in rows:
        details = {"old": row.status, "new": _RESOLVED, "because": "its alerts are resolved"}
        entries.append(NewEntry(incident_id=row.id, kind=EntryKind.STATUS, details=details))
        _set(row, _RESOLVED, now=now)
    add_entries(entries, by=None, session=session, now=now)
    release_fingerprints([row.id for row in rows], session=session)
    session.flush()
    stop_following(project_id, session=session)
    return rows


def _has_alert(statuses: Sequence[str]) -> ColumnElement[bool]:
    return (
        exists()
        .where(
            IncidentAlert.incident_id == Incident.id,
            Alert.id == IncidentAlert.alert_id,
            Alert.status.in_(statuses),
        )
        .correlate(Incident)
    )
