"""Links between alerts and incidents, and the fingerprints of open incidents.

A fingerprint belongs to at most one open incident. New alerts with this fingerprint join the
incident.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import Follower, add_follower, remove_follower
from domain.alerts.handling.status import lock_project_alerts
from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.incidents.types import MAX_ALERTS_PER_LINK, OPEN_STATUSES
from models import Alert, Incident, IncidentAlert, IncidentFingerprint, IncidentRule

#: Maximum number of rows in a statement.
_MAX_ROWS_PER_STATEMENT = 500


class LinkedAlert(NamedTuple):
    """The ID, the number and the fingerprint of an alert to link to an incident."""

    id: int
    iid: int
    fingerprint: bytes | None


def lock_alerts_to_link(
    project_id: int, iids: Sequence[int], *, session: Session
) -> list[LinkedAlert]:
    """Return alerts sorted by ID, locked until the end of the transaction.

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


def find_open_incidents_for_alerts(
    alert_ids: Iterable[int], *, session: Session
) -> Mapping[int, Incident]:
    """Return the open incidents that contain the alerts, by alert ID."""
    rows = session.execute(
        select(IncidentAlert.alert_id, Incident)
        .join(Incident, Incident.id == IncidentAlert.incident_id)
        .where(IncidentAlert.alert_id.in_(alert_ids), Incident.status.in_(OPEN_STATUSES))
    )
    return dict(rows.all())


def find_incidents_by_fingerprint(
    project_id: int, fingerprints: Iterable[bytes], *, session: Session
) -> Mapping[bytes, int]:
    """Return the ID of the open incident to which each fingerprint belongs."""
    rows = session.execute(
        select(IncidentFingerprint.fingerprint, IncidentFingerprint.incident_id).where(
            IncidentFingerprint.project_id == project_id,
            IncidentFingerprint.fingerprint.in_(set(fingerprints)),
        )
    )
    return dict(rows.all())


def check_not_in_open_incident(alerts: Sequence[LinkedAlert], *, session: Session) -> None:
    """Check that no open incident contains one of the alerts.

    Raise ConflictError otherwise.
    """
    taken = find_open_incidents_for_alerts([alert.id for alert in alerts], session=session)
    for alert in alerts:
        if alert.id in taken:
            other = taken[alert.id].iid
            message = f"Alert {alert.iid} already belongs to the open incident {other}."
            raise ConflictError(message, field="alerts")


AlertsByIncident = Mapping[int, Sequence[LinkedAlert]]


def store_alert_links(links: AlertsByIncident, *, session: Session) -> None:
    """Store the links between alerts and incidents. The caller must update the alert counts."""
    rows = [
        {"incident_id": incident_id, "alert_id": alert.id}
        for incident_id, alerts in links.items()
        for alert in alerts
    ]
    if rows:
        session.execute(insert(IncidentAlert), rows)


def claim_fingerprints(links: AlertsByIncident, project_id: int, *, session: Session) -> None:
    """Assign the fingerprints of alerts to their open incidents.

    Fingerprints that belong to another open incident are not reassigned. From now on, changes to
    the project's alerts are queued, so that its incidents are updated.
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
    statement = build_session_insert(IncidentFingerprint, session=session).on_conflict_do_nothing()
    for begin in range(0, len(rows), _MAX_ROWS_PER_STATEMENT):
        session.execute(statement, rows[begin : begin + _MAX_ROWS_PER_STATEMENT])


def release_fingerprints(incident_ids: Sequence[int], *, session: Session) -> None:
    """Delete closed incidents' fingerprints, so that new alerts do not join these incidents."""
    session.execute(
        build_bulk_delete(IncidentFingerprint).where(
            IncidentFingerprint.incident_id.in_(incident_ids)
        )
    )


def reclaim_fingerprints(incident: Incident, *, session: Session) -> None:
    """Assign the fingerprints of a reopened incident's alerts to the incident again.

    Fingerprints that now belong to another open incident are not reassigned.
    """
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


def stop_queuing_alert_changes_if_unneeded(project_id: int, *, session: Session) -> None:
    """Stop queuing a project's alert changes if no rule or incident needs them.

    The changes are needed if the project has an active rule or an open incident with alerts.
    """
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
