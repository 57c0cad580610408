"""Queues messages about alerts and incidents for endpoints that subscribe to them.

A message contains the event and the current state of the alert or incident. It contains no
usernames, so that receivers' logs contain no data about deleted accounts.

A database trigger stores each change to an incident in the transaction of the change. The stored
change is deleted in the transaction that queues its messages, so each change is queued exactly
once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import orjson
from sqlalchemy import exists, insert, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import QueuedChange
from domain.alerts.formats.base import ParserSettings
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.queries import ALERT_LIST_QUERY, build_alert_list_row
from domain.alerts.matching.alert_labels import AlertLabels, find_alert_labels
from domain.alerts.matching.conditions import AlertConditions, meets_conditions, parse_conditions
from domain.core.clock import format_api_time
from domain.core.database.bulk_statements import build_bulk_delete
from domain.core.due_time_sql import NOW
from domain.delivery.outgoing.signing import generate_message_id
from domain.delivery.queue import Backoff, DeliveryQueue
from domain.delivery.webhooks.types import DeliveryState, WebhookEvent, is_subscribed
from models import Alert, Incident, IncidentAlert, Project, WebhookDelivery, WebhookEndpoint
from models import WebhookIncidentChange as _Change

#: Maximum number of labels, and maximum length of a label's name and value. Excess labels are
#: omitted, and longer texts are truncated.
_MAX_LABELS = 64
_MAX_LABEL_LENGTH = 1_000

_JsonObject = dict[str, Any]
_RETRY_DELAY = timedelta(minutes=1)
INCIDENT_CHANGE_QUEUE = DeliveryQueue(
    due_at=_Change.next_try_at,
    is_due_without_time=True,
    subject=(_Change.incident_id,),
    backoff=Backoff(first=_RETRY_DELAY, longest=_RETRY_DELAY),
)
#: Condition that at least one change to an incident is due.
INCIDENT_CHANGES_ARE_DUE = exists().where(INCIDENT_CHANGE_QUEUE.build_due_condition(NOW))
_MAX_ALERTS, _MAX_DESCRIPTION_LENGTH = 100, 10_000


def build_webhook_body(
    event: str, moment: datetime, project: _JsonObject, **about: _JsonObject
) -> str:
    """Return the body of a message as JSON.

    `project` is a value that `build_project_payloads` returns.
    """
    message = {
        "type": event,
        "timestamp": format_api_time(moment),
        "data": {"project": project, **about},
    }
    return orjson.dumps(message).decode()


def build_project_payloads(
    ids: Iterable[int], *, base_url: str, session: Session
) -> Mapping[int, _JsonObject]:
    """Return existing projects in the message format, by ID."""
    rows = session.execute(
        select(Project.id, Project.name, Project.path).where(
            Project.id.in_(set(ids)), Project.deleted_at.is_(None)
        )
    )
    return {
        row.id: {
            "id": row.id,
            "name": row.name,
            "path_with_namespace": row.path,
            "web_url": f"{base_url}/{row.path}",
        }
        for row in rows
    }


def build_alert_payloads(
    labels: Mapping[int, AlertLabels], *, base_url: str, session: Session
) -> Mapping[int, _JsonObject]:
    """Return alerts in the message format, by ID.

    `labels` contains the labels of each alert, by ID.
    """
    rows = session.execute(ALERT_LIST_QUERY.where(Alert.id.in_(labels))).all()
    return {row[0].id: _build_alert(row, labels[row[0].id], base_url) for row in rows}


def _build_alert(row: Any, labels: AlertLabels, base_url: str) -> _JsonObject:
    found = build_alert_list_row(row)
    return {
        "id": found.id,
        "iid": found.iid,
        "title": found.title,
        "description": row[0].description,
        "severity": found.severity,
        "status": found.status,
        "environment": found.environment,
        "service": found.service,
        "monitoring_tool": found.monitoring_tool,
        "hosts": list(found.hosts),
        "integration": found.integration_name,
        "events": found.events,
        "started_at": format_api_time(found.started_at),
        "ended_at": format_api_time(found.ended_at) if found.ended_at else None,
        "last_event_at": format_api_time(found.last_event_at),
        "labels": _limit_labels(labels.labels),
        "web_url": f"{base_url}/{found.project_path}/-/alerts/{found.iid}",
    }


def _limit_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    some = islice(sorted(labels.items()), _MAX_LABELS)
    return {name[:_MAX_LABEL_LENGTH]: value[:_MAX_LABEL_LENGTH] for name, value in some}


def queue_alert_changes(
    changes: Sequence[QueuedChange],
    *,
    base_url: str,
    parser_settings: ParserSettings,
    session: Session,
    now: datetime,
) -> int:
    """Queue messages about alerts for subscribed endpoints.

    Return the number of messages. A message contains the current state of the alert. No messages
    are queued for changes to deleted alerts or in deleted projects.
    """
    endpoints = find_active_endpoints({each.project_id for each in changes}, session=session)
    wanted = [each for each in changes if each.project_id in endpoints]
    labels = find_alert_labels(
        (each.alert_id for each in wanted), session=session, reading=parser_settings
    )
    alerts = build_alert_payloads(labels, base_url=base_url, session=session)
    projects = build_project_payloads(endpoints, base_url=base_url, session=session)
    rows: list[dict[str, Any]] = []
    for change in wanted:
        if change.alert_id not in alerts or change.project_id not in projects:
            continue
        event = WebhookEvent(f"alert.{change.kind.value}")
        project, alert = projects[change.project_id], alerts[change.alert_id]
        body = build_webhook_body(event, change.created_at, project, alert=alert)
        key = f"alert:{change.alert_id}"
        rows += [
            build_delivery_row(endpoint, event, body, order_key=key, now=now)
            for endpoint, conditions in endpoints[change.project_id]
            if is_subscribed(endpoint.events, event)
            and meets_conditions(conditions, labels[change.alert_id])
        ]
    return store_deliveries(rows, session=session)


def find_active_endpoints(
    project_ids: Iterable[int], *, session: Session
) -> Mapping[int, Sequence[tuple[WebhookEndpoint, AlertConditions]]]:
    """Return the active endpoints with their conditions, by project ID."""
    rows = session.scalars(
        select(WebhookEndpoint)
        .where(
            WebhookEndpoint.project_id.in_(set(project_ids)), WebhookEndpoint.paused_at.is_(None)
        )
        .order_by(WebhookEndpoint.id)
    )
    found: dict[int, list[tuple[WebhookEndpoint, AlertConditions]]] = defaultdict(list)
    for row in rows:
        found[row.project_id].append((row, parse_conditions(row.conditions)))
    return found


def build_delivery_row(
    endpoint: WebhookEndpoint, event: str, body: str, *, order_key: str | None, now: datetime
) -> dict[str, Any]:
    """Return the row for a delivery that is waiting to be sent."""
    return {
        "endpoint_id": endpoint.id,
        "project_id": endpoint.project_id,
        "message_id": f"msg_{generate_message_id()}",
        "event": event,
        "order_key": order_key,
        "body": body,
        "state": DeliveryState.WAITING.value,
        "created_at": now,
        "queued_at": now,
        "next_try_at": now,
        "tries": 0,
    }


def store_deliveries(rows: Sequence[dict[str, Any]], *, session: Session) -> int:
    """Store deliveries in the given order, and return the number of deliveries."""
    if rows:
        session.execute(insert(WebhookDelivery), list(rows))
    return len(rows)


def queue_incident_changes(
    changes: Sequence[_Change], *, base_url: str, session: Session, now: datetime
) -> int:
    """Queue messages about incidents for endpoints that subscribe to them, and delete the changes.

    Return the number of messages. A message contains the current state of the incident. No messages
    are queued for changes to deleted incidents or in deleted projects.
    """
    endpoints = find_active_endpoints({each.project_id for each in changes}, session=session)
    projects = build_project_payloads(endpoints, base_url=base_url, session=session)
    incidents = _build_incident_payloads(
        [each.incident_id for each in changes], projects, session=session
    )
    rows: list[dict[str, Any]] = []
    for change in changes:
        shown = incidents.get(change.incident_id)
        if shown is None:
            continue
        event = WebhookEvent(f"incident.{change.kind}")
        body = build_webhook_body(
            event, change.created_at, projects[change.project_id], incident=shown
        )
        key = f"incident:{change.incident_id}"
        rows += [
            build_delivery_row(endpoint, event, body, order_key=key, now=now)
            for endpoint, _ in endpoints[change.project_id]
            if is_subscribed(endpoint.events, event)
        ]
    done = [each.id for each in changes]
    session.execute(build_bulk_delete(_Change).where(_Change.id.in_(done)))
    return store_deliveries(rows, session=session)


def _build_incident_payloads(
    ids: Sequence[int], projects: Mapping[int, _JsonObject], *, session: Session
) -> Mapping[int, dict[str, Any]]:
    """Return incidents in these projects in the message format, by ID."""
    rows = session.scalars(
        select(Incident).where(Incident.id.in_(ids), Incident.project_id.in_(projects))
    ).all()
    alerts = _find_alert_numbers([row.id for row in rows], session=session)
    return {
        row.id: {
            "id": row.id,
            "iid": row.iid,
            "title": row.title,
            "description": row.description[:_MAX_DESCRIPTION_LENGTH],
            # `urgency` increases with the severity, and `SEVERITIES` starts with the highest.
            "severity": SEVERITIES[len(SEVERITIES) - 1 - row.urgency].value,
            "status": row.status,
            "alerts": alerts[row.id],
            "alerts_count": row.alerts,
            "created_at": format_api_time(row.created_at),
            "acknowledged_at": format_api_time(row.acknowledged_at)
            if row.acknowledged_at
            else None,
            "resolved_at": format_api_time(row.resolved_at) if row.resolved_at else None,
            "web_url": f"{projects[row.project_id]['web_url']}/-/incidents/{row.iid}",
        }
        for row in rows
    }


def _find_alert_numbers(ids: Iterable[int], *, session: Session) -> Mapping[int, list[int]]:
    """Return the numbers (`iid`) of the first alerts in each incident."""
    numbers = (
        select(Alert.iid)
        .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
        .order_by(Alert.iid)
        .limit(_MAX_ALERTS)
    )
    return {
        each: [*session.scalars(numbers.where(IncidentAlert.incident_id == each))] for each in ids
    }
