"""Snippets for the configuration of senders, and example bodies for test alerts."""

import shlex
from datetime import datetime, timedelta

import orjson

from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations.sender_snippets import Snippet, sender_snippets


def example_body(integration_type: IntegrationType, *, now: datetime) -> str:
    """Return an example body in the format of a type, for the test alert page."""
    started = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    build = (
        _prometheus_example if integration_type is IntegrationType.PROMETHEUS else _generic_example
    )
    return orjson.dumps(build(started), option=orjson.OPT_INDENT_2).decode()


def _generic_example(started: str) -> dict[str, object]:
    return {
        "title": "Disk almost full on web-1",
        "description": "/var has 2 % left; it fills in about 40 minutes.",
        "start_time": started,
        "service": "web",
        "monitoring_tool": "test",
        "hosts": ["web-1"],
        "severity": "high",
        "fingerprint": "disk-web-1-var",
        "platform_environment_name": "production",
        "mount": {"path": "/var", "free_percent": 2},
    }


def _prometheus_example(started: str) -> dict[str, object]:
    labels = {"alertname": "InstanceDown", "instance": "web-1:9100", "severity": "page"}
    annotations = {
        "summary": "web-1 does not answer",
        "description": "web-1:9100 of job node has been down for five minutes.",
    }
    return {
        "version": "4",
        "groupKey": '{}:{alertname="InstanceDown"}',
        "status": "firing",
        "receiver": "gatebell",
        "groupLabels": {"alertname": "InstanceDown"},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "http://alertmanager.example:9093",
        "truncatedAlerts": 0,
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": annotations,
                "startsAt": started,
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://prometheus.example:9090/graph?g0.expr=up+%3D%3D+0",
                "fingerprint": "5a9c3bd1f0e24477",
            }
        ],
    }


def snippets(
    integration_type: IntegrationType, url: str, key: str, *, base_url: str, now: datetime
) -> tuple[Snippet, ...]:
    """Return the snippets for a type of integration, with URL and key filled in."""
    body = orjson.loads(example_body(integration_type, now=now - timedelta(minutes=1)))
    by_hand = (_curl(url, key, body), _python(url, key, body))
    if integration_type is IntegrationType.PROMETHEUS:
        return (_alertmanager(url, key), _operator(url, key), _grafana(url, key), *by_hand)
    return (*by_hand, _pagerduty(base_url, key), *sender_snippets(url, key))


def _curl(url: str, key: str, body: object) -> Snippet:
    return Snippet(
        title="curl: one alert on the command line",
        language="sh",
        text=(
            f"curl {shlex.quote(url)} \\\n"
            f"  --header 'Authorization: Bearer {key}' \\\n"
            "  --header 'Content-Type: application/json' \\\n"
            f"  --data {shlex.quote(orjson.dumps(body).decode())}\n"
        ),
    )


def _alertmanager(url: str, key: str) -> Snippet:
    return Snippet(
        title="Alertmanager: a receiver in alertmanager.yml",
        language="yaml",
        text=(
            "route:\n"
            "  receiver: gatebell\n"
            "receivers:\n"
            "  - name: gatebell\n"
            "    webhook_configs:\n"
            f"      - url: '{url}'\n"
            "        send_resolved: true\n"
            "        http_config:\n"
            "          authorization:\n"
            "            type: Bearer\n"
            f"            credentials: '{key}'\n"
        ),
    )


def _operator(url: str, key: str) -> Snippet:
    return Snippet(
        title="Prometheus Operator: for kubectl apply, in the monitored namespace",
        language="yaml",
        text=(
            "apiVersion: v1\n"
            "kind: Secret\n"
            "metadata:\n"
            "  name: gatebell\n"
            "stringData:\n"
            f"  key: '{key}'\n"
            "---\n"
            "apiVersion: monitoring.coreos.com/v1alpha1\n"
            "kind: AlertmanagerConfig\n"
            "metadata:\n"
            "  name: gatebell\n"
            "spec:\n"
            "  route:\n"
            "    receiver: gatebell\n"
            "  receivers:\n"
            "    - name: gatebell\n"
            "      webhookConfigs:\n"
            f"        - url: '{url}'\n"
            "          sendResolved: true\n"
            "          httpConfig:\n"
            "            authorization:\n"
            "              type: Bearer\n"
            "              credentials:\n"
            "                name: gatebell\n"
            "                key: key\n"
        ),
    )


def _grafana(url: str, key: str) -> Snippet:
    return Snippet(
        title="Grafana: a contact point in provisioning/alerting/gatebell.yaml",
        language="yaml",
        text=(
            "apiVersion: 1\n"
            "contactPoints:\n"
            "  - orgId: 1\n"
            "    name: gatebell\n"
            "    receivers:\n"
            "      - uid: gatebell\n"
            "        type: webhook\n"
            "        disableResolveMessage: false\n"
            "        settings:\n"
            f"          url: '{url}'\n"
            "          httpMethod: POST\n"
            "          authorization_scheme: Bearer\n"
            f"          authorization_credentials: '{key}'\n"
        ),
    )


def _pagerduty(base_url: str, key: str) -> Snippet:
    event = {"url": f"{base_url}/v2/enqueue", "routing_key": key}
    return Snippet(
        title="PagerDuty: URL of the Events API v2 and routing key, for tools that speak it",
        language="json",
        text=f"{orjson.dumps(event, option=orjson.OPT_INDENT_2).decode()}\n",
    )


def _python(url: str, key: str, body: object) -> Snippet:
    # The JSON of the body is a Python literal as well: it has no true, false or null.
    literal = orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()
    return Snippet(
        title="Python: standard library only",
        language="python",
        text=(
            "import json\n"
            "import urllib.request\n\n"
            f"alert = {literal}\n"
            "request = urllib.request.Request(\n"
            f'    "{url}",\n'
            "    data=json.dumps(alert).encode(),\n"
            "    headers={\n"
            f'        "Authorization": "Bearer {key}",\n'
            '        "Content-Type": "application/json",\n'
            "    },\n"
            ")\n"
            "print(urllib.request.urlopen(request).read().decode())\n"
        ),
    )
