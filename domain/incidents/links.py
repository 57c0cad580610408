"""Links between alerts and incidents, and the fingerprints of open incidents.

While an open incident holds a fingerprint, new alerts with this fingerprint join the incident.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import Follower, add_follower, remove_follower
from domain.alerts.handling.status import lock_project_alerts
from domain.core.database.rows import delete_rows, insert_into
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.incidents.types import MAX_ALERTS_PER_LINK, OPEN_STATUSES
from models import Alert, Incident, IncidentAlert, IncidentFingerprint, IncidentRule

#: Maximum number of rows in a statement.
_MAX_ROWS_PER_STATEMENT = 500


class LinkedAlert(NamedTuple):
    """The data that is needed to link an alert to an incident."""

    id: int
    iid: int
    fingerprint: bytes | None


def lock_alerts_to_link(
    project_id: int, iids: Sequence[int], *, session: Session
) -> list[LinkedAlert]:
    """Return alerts sorted by id, locked until the end of the transaction.

    The lock ensures that no later change to these alerts is missed. Raise NotFoundError for an
    unknown number, and InvalidError for more than MAX_ALERTS_PER_LINK numbers.
    """
    if len(set(iids)) > MAX_ALERTS_PER_LINK:
        message = f"At most {MAX_ALERTS_PER_LINK} alerts can be linked in one request."
        raise InvalidError(message, field="alerts")
    if not iids:
        return []
    lock_project_alerts(project_id, session=session)
    rows = session.execute(
        select(Alert.id, Alert.iid, Alert.fingerprint)
        .where(Alert.project_id == project_id, Alert.iid.in_(iids))
        .order_by(Alert.id)
        .with_for_update(key_share=True)
    ).all()
    found = [LinkedAlert(*row) for row in rows]
    missing = set(iids) - {alert.iid for alert in found}
    if missing:
        raise NotFoundError(f"Alert {min(missing)} not found in this project.")
    return found


def find_open_incidents_of_alerts(
    alert_ids: Iterable[int], *, session: Session
) -> Mapping[int, Incident]:
    """Return the open incidents that contain the alerts, by alert id."""
    rows = session.execute(
        select(IncidentAlert.alert_id, Incident)
        .join(Incident, Incident.id == IncidentAlert.incident_id)
        .where(IncidentAlert.alert_id.in_(alert_ids), Incident.status.in_(OPEN_STATUSES))
    )
    return dict(rows.all())


def find_incidents_by_fingerprint(
    project_id: int, fingerprints: Iterable[bytes], *, session: Session
) -> Mapping[bytes, int]:
    """Return the id of the open incident that holds each fingerprint."""
    rows = session.execute(
        select(IncidentFingerprint.fingerprint, IncidentFingerprint.incident_id).where(
            IncidentFingerprint.project_id == project_id,
            IncidentFingerprint.fingerprint.in_(set(fingerprints)),
        )
    )
    return dict(rows.all())


def check_not_in_open_incident(alerts: Sequence[LinkedAlert], *, session: Session) -> None:
    """Check that no open incident contains one of the alerts.

    Raise ConflictError if an open incident does.
    """
    taken = find_open_incidents_of_alerts([alert.id for alert in alerts], session=session)
    for alert in alerts:
        if alert.id in taken:
            other = taken[alert.id].iid
            message = f"Alert {alert.iid} already belongs to the open incident {other}."
            raise ConflictError(message, field="alerts")


AlertsByIncident = Mapping[int, Sequence[LinkedAlert]]


def store_links(links: AlertsByIncident, *, session: Session) -> None:
    """Link alerts to incidents, by incident id. The caller must update the alert counts."""
    rows = [
        {"incident_id": incident_id, "alert_id": alert.id}
        for incident_id, alerts in links.items()
        for alert in alerts
    ]
    if rows:
        session.execute(insert(IncidentAlert), rows)


def claim_fingerprints(links: AlertsByIncident, project_id: int, *, session: Session) -> None:
    """Store the fingerprints of alerts for open incidents, and follow changes to alerts.

    Fingerprints that another open incident holds are not reassigned.
    """
    held = {
        alert.fingerprint: incident_id
        for incident_id, alerts in links.items()
        for alert in alerts
        if alert.fingerprint is not None
    }
    _store_fingerprints(project_id, held, session=session)
    add_follower(project_id, Follower.INCIDENTS, session=session)


def _store_fingerprints(project_id: int, holders: Mapping[bytes, int], *, session: Session) -> None:
    rows = [
        {"project_id": project_id, "fingerprint": fingerprint, "incident_id": incident_id}
        for fingerprint, incident_id in holders.items()
    ]
    statement = insert_into(IncidentFingerprint, session=session).on_conflict_do_nothing()
    for begin in range(0, len(rows), _MAX_ROWS_PER_STATEMENT):
        session.execute(statement, rows[begin : begin + _MAX_ROWS_PER_STATEMENT])


def release_fingerprints(incident_ids: Sequence[int], *, session: Session) -> None:
    """Delete the fingerprints of closed incidents, so that new alerts do not join them."""
    session.execute(
        delete_rows(IncidentFingerprint).where(IncidentFingerprint.incident_id.in_(incident_ids))
    )


def reclaim_fingerprints(incident: Incident, *, session: Session) -> None:
    """Store those fingerprints of a reopened incident that no other incident holds."""
    fingerprints = session.scalars(
        select(Alert.fingerprint)
        .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
        .where(IncidentAlert.incident_id == incident.id, Alert.fingerprint.is_not(None))
        .distinct()
    ).all()
    held = {fingerprint: incident.id for fingerprint in fingerprints if fingerprint is not None}
    _store_fingerprints(incident.project_id, held, session=session)
    if incident.alerts:
        add_follower(incident.project_id, Follower.INCIDENTS, session=session)


def remove_follower_if_unneeded(project_id: int, *, session: Session) -> None:
    """Stop following alerts if a project has no active rule and no open incident with alerts."""
    has_rule = select(IncidentRule.id).where(
        IncidentRule.project_id == project_id, IncidentRule.is_active
    )
    has_open = select(Incident.id).where(
        Incident.project_id == project_id, Incident.status.in_(OPEN_STATUSES), Incident.alerts > 0
    )
    for found in (has_rule, has_open):
        if session.scalar(found.limit(1)) is not None:
            return
    remove_follower(project_id, Follower.INCIDENTS, session=session)
