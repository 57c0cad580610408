"""Requests to Alerta: the same alerts in its own format."""

from collections.abc import Mapping

from bench.alert_bodies import build_metrics_webhook, format_json
from bench.shots import VALUE_PLACEHOLDER, Shot, ValueMode
from bench.workloads import METRICS_ALERTS, RequestKind

#: Settings without API keys and otherwise with defaults, which saves a lookup for each request.
ALERTA_ENVIRONMENT: Mapping[str, str] = {
    "SECRET_KEY": "of a benchmark that is thrown away",
    "ALERTA_SVR_CONF_FILE": "/dev/null",
}
_JSON_HEADERS = {"Content-Type": "application/json"}


def build_alerta_shots() -> Mapping[RequestKind, Shot]:
    """Return the requests to send."""
    webhook = build_metrics_webhook(METRICS_ALERTS, VALUE_PLACEHOLDER)
    return {
        RequestKind.INTAKE: _build_post(
            "/alert", _build_alert(f"DiskFull{VALUE_PLACEHOLDER}"), ValueMode.COUNT, 201
        ),
        RequestKind.DUPLICATES: _build_post(
            "/alert", _build_alert("DiskFull"), ValueMode.SAME, 201
        ),
        RequestKind.METRICS: _build_post("/webhooks/prometheus", webhook, ValueMode.COUNT, 201),
    }


def _build_post(path: str, body: str, mode: ValueMode, status: int) -> Shot:
    return Shot(
        method="POST", path=path, headers=_JSON_HEADERS, body=body, mode=mode, expected={status: ()}
    )


def _build_alert(event: str) -> str:
    fields = {
        "resource": "web-1.example.com",
        "event": event,
        "environment": "Production",
        "severity": "major",
        "service": ["web"],
        "value": "4 %",
        "text": "Less than 5 % of the space is free.",
        "origin": "cron",
    }
    return format_json(fields)
