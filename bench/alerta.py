"""Requests to Alerta: the same alerts in its own format."""

from collections.abc import Mapping

from bench.alert_bodies import as_json, metrics_webhook
from bench.shots import HOLE, Mode, Shot
from bench.workloads import METRICS_ALERTS, Work

#: Settings without API keys and otherwise with defaults, which saves a lookup for each request.
ALERTA_ENVIRONMENT: Mapping[str, str] = {
    "SECRET_KEY": "of a benchmark that is thrown away",
    "ALERTA_SVR_CONF_FILE": "/dev/null",
}
_JSON = {"Content-Type": "application/json"}


def alerta_shots() -> Mapping[Work, Shot]:
    """Return the requests to send."""
    webhook = metrics_webhook(METRICS_ALERTS, HOLE)
    return {
        Work.INTAKE: _post("/alert", _alert(f"DiskFull{HOLE}"), Mode.COUNT, 201),
        Work.DUPLICATES: _post("/alert", _alert("DiskFull"), Mode.SAME, 201),
        Work.METRICS: _post("/webhooks/prometheus", webhook, Mode.COUNT, 201),
    }


def _post(path: str, body: str, mode: Mode, status: int) -> Shot:
    return Shot(
        method="POST", path=path, headers=_JSON, body=body, mode=mode, expected={status: ()}
    )


def _alert(event: str) -> str:
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
    return as_json(fields)
