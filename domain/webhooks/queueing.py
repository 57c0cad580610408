"""Queues messages about alerts for the endpoints that want them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.alerts.formats.base import Reading
from domain.alerts.matching.conditions import Conditions, conditions_from, meets
from domain.alerts.matching.labels import labels_of
from domain.outgoing.signing import new_message_id
from domain.webhooks.delivery_states import DeliveryState
from domain.webhooks.events import WebhookEvent, takes
from domain.webhooks.payloads import alerts_of, body_of, projects_of
from models import WebhookDelivery, WebhookEndpoint


def queue_alert_changes(
    changes: Sequence[Change],
    *,
    base_url: str,
    reading: Reading,
    session: Session,
    now: datetime,
) -> int:
    """Queue a message for each endpoint that wants a change, and return how many there are.

    A message shows the alert as it is now. Alerts and projects that are gone have none.
    """
    endpoints = active_endpoints({each.project_id for each in changes}, session=session)
    wanted = [each for each in changes if each.project_id in endpoints]
    labels = labels_of((each.alert_id for each in wanted), session=session, reading=reading)
    alerts = alerts_of(labels, base_url=base_url, session=session)
    projects = projects_of(endpoints, base_url=base_url, session=session)
    rows: list[dict[str, Any]] = []
    for change in wanted:
        if change.alert_id not in alerts or change.project_id not in projects:
            continue
        event = WebhookEvent(f"alert.{change.kind.value}")
        project, alert = projects[change.project_id], alerts[change.alert_id]
        body = body_of(event, change.created_at, project, alert=alert)
        key = f"alert:{change.alert_id}"
        rows += [
            new_delivery(endpoint, event, body, order_key=key, now=now)
            for endpoint, conditions in endpoints[change.project_id]
            if takes(endpoint.events, event) and meets(conditions, labels[change.alert_id])
        ]
    return store_deliveries(rows, session=session)


def active_endpoints(
    project_ids: Iterable[int], *, session: Session
) -> Mapping[int, Sequence[tuple[WebhookEndpoint, Conditions]]]:
    """Return the endpoints of projects that are not paused, by project, with their conditions."""
    rows = session.scalars(
        select(WebhookEndpoint)
        .where(
            WebhookEndpoint.project_id.in_(set(project_ids)), WebhookEndpoint.paused_at.is_(None)
        )
        .order_by(WebhookEndpoint.id)
    )
    found: dict[int, list[tuple[WebhookEndpoint, Conditions]]] = defaultdict(list)
    for row in rows:
        found[row.project_id].append((row, conditions_from(row.conditions)))
    return found


def new_delivery(
    endpoint: WebhookEndpoint, event: str, body: str, *, order_key: str | None, now: datetime
) -> dict[str, Any]:
    """Return the row of a delivery that waits to be sent."""
    return {
        "endpoint_id": endpoint.id,
        "project_id": endpoint.project_id,
        "message_id": f"msg_{new_message_id()}",
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
    """Store deliveries in their order, and return how many there are."""
    if rows:
        session.execute(insert(WebhookDelivery), list(rows))
    return len(rows)
