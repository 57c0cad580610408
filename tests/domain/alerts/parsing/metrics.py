"""Minimal Alertmanager webhooks that tests modify."""

from datetime import UTC, datetime
from typing import Any

from domain.alerts.formats import prometheus
from domain.alerts.parsing.incoming_alert import (
    IncomingAlert,
)
from tests.domain.alerts.parsing.strategies import NOW

START = "2026-11-21T07:52:39Z"
STARTED_AT = datetime(2026, 11, 21, 7, 52, 39, tzinfo=UTC)


def webhook(*items: Any, **changes: Any) -> dict[str, Any]:
    return {
        "version": "4",
        "groupKey": "{}",
        "status": "firing",
        "receiver": "alerts",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.example",
        "alerts": list(items),
        **changes,
    }


def item(**changes: Any) -> dict[str, Any]:
    return {
        "status": "firing",
        "labels": {"alertname": "HighLatency"},
        "annotations": {},
        "startsAt": START,
        "endsAt": "0001-01-01T00:00:00Z",
        **changes,
    }


def read(**changes: Any) -> IncomingAlert:
    (alert,) = prometheus.parse_webhook_items(webhook(item(**changes)), now=NOW).alerts
    return alert


def with_annotations(**annotations: Any) -> IncomingAlert:
    return read(annotations=annotations)


def with_labels(**labels: Any) -> IncomingAlert:
    return read(labels={"alertname": "HighLatency", **labels})
