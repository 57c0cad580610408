"""Request bodies from monitoring systems: Alertmanager webhooks, and JSON from website checks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from demo.catalog import Fault

_NO_END_TIME = "0001-01-01T00:00:00Z"
_PROMETHEUS_URL = "http://prometheus.acme.example/graph?g0.expr="


@dataclass(frozen=True, kw_only=True)
class OngoingFault:
    """A fault on a machine, with its start time."""

    fault: Fault
    instance: str
    began_at: datetime


def build_webhook(some: Sequence[OngoingFault], *, ended_at: datetime | None = None) -> bytes:
    """Return an Alertmanager webhook for faults that are firing or resolved."""
    status = "resolved" if ended_at else "firing"
    alerts = [_build_item(each, status, ended_at) for each in some]
    first = alerts[0]["labels"]
    grouped = {"alertname": first["alertname"], "service": first["service"]}
    body = {
        "version": "4",
        "groupKey": "{}:" + json.dumps(grouped),
        "status": status,
        "receiver": "gatebell",
        "groupLabels": grouped,
        "commonLabels": grouped,
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.acme.example",
        "truncatedAlerts": 0,
        "alerts": alerts,
    }
    return json.dumps(body).encode()


def _build_item(each: OngoingFault, status: str, ended_at: datetime | None) -> dict[str, Any]:
    fault = each.fault
    return {
        "status": status,
        "labels": {
            "alertname": fault.name,
            "severity": fault.severity,
            "service": fault.service,
            "instance": each.instance,
            "platform_environment_name": fault.environment,
            "team": "payments" if fault.service == "checkout" else "platform",
        },
        "annotations": {
            "title": fault.summary,
            "description": fault.description,
            "runbook": f"https://wiki.acme.example/runbooks/{fault.name}",
        },
        "startsAt": each.began_at.isoformat(),
        "endsAt": ended_at.isoformat() if ended_at else _NO_END_TIME,
        "generatorURL": _PROMETHEUS_URL + fault.expression.replace(" ", "+").replace("&", "%26"),
    }


def build_check(fields: Mapping[str, Any]) -> bytes:
    """Return the request body of a website check."""
    return json.dumps({"monitoring_tool": "Website checks", **fields}).encode()
