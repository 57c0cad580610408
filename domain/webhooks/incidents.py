"""Queues messages about incidents for the endpoints that want them.

A trigger stores each change in its own transaction. It is deleted in the transaction that queues
the messages, so none is lost and none is queued twice.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, or_, select, update
from sqlalchemy.orm import Session, aliased

from domain.alerts.listing.filters import SEVERITIES
from domain.clock import written
from domain.due import NOW, Moment
from domain.webhooks.events import WebhookEvent, takes
from domain.webhooks.payloads import MessageProject, body_of, projects_of
from domain.webhooks.queueing import active_endpoints, new_delivery, store_deliveries
from models import Alert, Incident, IncidentAlert, WebhookIncidentChange

_AFTER_FAILURE = timedelta(minutes=1)
_MOST_ALERTS, _LONGEST_DESCRIPTION = 100, 10_000

_Change = WebhookIncidentChange


def _is_due(now: Moment) -> ColumnElement[bool]:
    return or_(_Change.next_try_at.is_(None), _Change.next_try_at <= now)


#: Whether a change of an incident waits.
INCIDENT_CHANGES_ARE_DUE = exists().where(_is_due(NOW))


def take_incident_changes(
    *, session: Session, now: datetime, limit: int
) -> Sequence[WebhookIncidentChange]:
    """Lock and return changes in order, at most one of each incident."""
    earlier = aliased(_Change)
    waits = exists().where(earlier.incident_id == _Change.incident_id, earlier.id < _Change.id)
    return session.scalars(
        select(_Change)
        .where(_is_due(now), ~waits)
        .order_by(_Change.id)
        .limit(limit)
        .with_for_update(skip_locked=True, of=_Change)
    ).all()


def queue_incident_changes(
    changes: Sequence[WebhookIncidentChange], *, base_url: str, session: Session, now: datetime
) -> int:
    """Queue a message for each endpoint that wants a change, and forget the changes.

    A message shows the incident as it is now. Incidents and projects that are gone have none.
    """
    endpoints = active_endpoints({each.project_id for each in changes}, session=session)
    projects = projects_of(endpoints, base_url=base_url, session=session)
    incidents = _incidents([each.incident_id for each in changes], projects, session=session)
    rows: list[dict[str, Any]] = []
    for change in changes:
        shown = incidents.get(change.incident_id)
        if shown is None:
            continue
        event = WebhookEvent(f"incident.{change.kind}")
        body = body_of(event, change.created_at, projects[change.project_id], incident=shown)
        key = f"incident:{change.incident_id}"
        rows += [
            new_delivery(endpoint, event, body, order_key=key, now=now)
            for endpoint, _ in endpoints[change.project_id]
            if takes(endpoint.events, event)
        ]
    done = [each.id for each in changes]
    session.execute(
        delete(_Change).where(_Change.id.in_(done)).execution_options(synchronize_session=False)
    )
    return store_deliveries(rows, session=session)


def postpone_incident_change(change_id: int, *, session: Session, now: datetime) -> None:
    """Leave a change that could not be queued for a while; later ones of its incident wait."""
    session.execute(
        update(_Change)
        .where(_Change.id == change_id)
        .values(next_try_at=now + _AFTER_FAILURE)
        .execution_options(synchronize_session=False)
    )


def _incidents(
    ids: Sequence[int], projects: Mapping[int, MessageProject], *, session: Session
) -> Mapping[int, dict[str, Any]]:
    """Return incidents of these projects by id, as messages show them."""
    rows = session.scalars(
        select(Incident).where(Incident.id.in_(ids), Incident.project_id.in_(projects))
    ).all()
    alerts = _alerts([row.id for row in rows], session=session)
    return {
        row.id: {
            "id": row.id,
            "iid": row.iid,
            "title": row.title,
            "description": row.description[:_LONGEST_DESCRIPTION],
            # The urgency grows with the severity.
            "severity": SEVERITIES[len(SEVERITIES) - 1 - row.urgency].value,
            "status": row.status,
            "alerts": alerts.get(row.id, []),
            "alerts_count": row.alerts,
            "created_at": written(row.created_at),
            "acknowledged_at": written(row.acknowledged_at) if row.acknowledged_at else None,
            "resolved_at": written(row.resolved_at) if row.resolved_at else None,
            "web_url": f"{projects[row.project_id].web_url}/-/incidents/{row.iid}",
        }
        for row in rows
    }


def _alerts(ids: Iterable[int], *, session: Session) -> Mapping[int, list[int]]:
    """Return the numbers (iid) of the first alerts of each incident."""
    found: dict[int, list[int]] = defaultdict(list)
    for incident_id in ids:
        found[incident_id] = list(
            session.scalars(
                select(Alert.iid)
                .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
                .where(IncidentAlert.incident_id == incident_id)
                .order_by(Alert.iid)
                .limit(_MOST_ALERTS)
            )
        )
    return found
