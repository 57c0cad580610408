"""Request bodies of alerts as senders send them."""

import json

from bench.shots import VALUE_PLACEHOLDER
from bench.workloads import LARGE_ALERTS


def build_generic_alert(title: str) -> str:
    """Return the body of an alert as a script sends it."""
    fields = {
        "title": title,
        "description": "Less than 5 % of the space is free.",
        "severity": "high",
        "service": "web",
        "monitoring_tool": "cron",
        "hosts": ["web-1.example.com"],
        "gitlab_environment_name": "production",
    }
    return format_json(fields)


def build_metrics_webhook(count: int, mark: str) -> str:
    """Return the body of a metrics webhook with `count` alerts."""
    items = [
        {
            "status": "firing",
            "labels": {
                "alertname": f"DiskFull{mark}n{number}",
                "instance": "web-1.example.com:9100",
                "severity": "critical",
                "environment": "Production",
                "service": "web",
            },
            "annotations": {"summary": "Less than 5 % of the space is free."},
            "startsAt": "2026-11-21T07:52:39.502249Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://metrics.example/graph",
            "fingerprint": f"{mark}n{number}",
        }
        for number in range(count)
    ]
    envelope = {
        "version": "4",
        "groupKey": "{}:{}",
        "status": "firing",
        "receiver": "gatebell",
        "externalURL": "http://alertmanager.example",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "alerts": items,
    }
    return format_json(envelope)


def build_large_webhook(number: int) -> bytes:
    """Return a webhook of new alerts that have not been sent before."""
    return build_metrics_webhook(LARGE_ALERTS, f"large{number:05d}x").encode()


def format_json(value: object) -> str:
    """Write JSON without escaping VALUE_PLACEHOLDER."""
    # The placeholder must not be escaped.
    return json.dumps(value).replace(json.dumps(VALUE_PLACEHOLDER)[1:-1], VALUE_PLACEHOLDER)
