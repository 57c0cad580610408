"""Bodies of known tools: each is recognized and opens an alert, which its recovery resolves."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.recognized_samples import MessageTexts, recognize_messages
from domain.alerts.reading.incoming import IncomingAlert, ParsedBody, Severity
from domain.alerts.reading.mapping import parse_mapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.tools import propose_mapping
from tests.support.alerts.senders import PAYLOADS

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
CRITICAL, HIGH, MEDIUM, LOW = Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW

#: Body of a firing alert, its tool, title and severity, and the body of its recovery.
TOOLS: tuple[tuple[str, str, str, Severity, str | None], ...] = (
    ("uptime_kuma_down", "Uptime Kuma", "Shop", CRITICAL, "uptime_kuma_up"),
    ("zabbix_problem", "Zabbix", "High CPU utilization (over 90% for 5m)", LOW, "zabbix_recovery"),
    (
        "sentry_issue_created",
        "Sentry (issues)",
        "KeyError: 'sku'",
        HIGH,
        "sentry_issue_resolved",
    ),
    ("sentry_event_alert", "Sentry (issue alerts)", "KeyError: 'sku'", HIGH, None),
    (
        "sentry_metric_critical",
        "Sentry (metric alerts)",
        "Critical: Too many errors",
        CRITICAL,
        "sentry_metric_resolved",
    ),
    ("sentry_plugin", "Sentry (webhooks plugin)", "KeyError: 'sku'", HIGH, None),
    ("cloudwatch_alarm", "Amazon CloudWatch through SNS", "shop-5xx", CRITICAL, "cloudwatch_ok"),
    ("sns_message", "Amazon SNS", "Deployment failed", CRITICAL, None),
    ("datadog_triggered", "Datadog", "CPU is high on db-1", CRITICAL, "datadog_recovered"),
    (
        "datadog_default",
        "Datadog (default payload)",
        "[Triggered] CPU is high on db-1",
        CRITICAL,
        None,
    ),
    ("healthchecks_down", "Healthchecks", "Nightly backup", CRITICAL, "healthchecks_up"),
    ("nagios_problem", "Nagios or Icinga", "web-1: HTTP", LOW, "nagios_recovery"),
    ("monit_failed", "Monit", "nginx: Connection failed", CRITICAL, "monit_succeeded"),
    (
        "collectd_failure",
        "collectd",
        "Host db-1.example.com, plugin load type load: shortterm is above the failure threshold.",
        CRITICAL,
        "collectd_okay",
    ),
    ("apprise_failure", "Apprise", "Disk of web-1", CRITICAL, "apprise_success"),
    (
        "statuspage_incident",
        "Statuspage",
        "Payments are slow",
        HIGH,
        "statuspage_incident_resolved",
    ),
    (
        "statuspage_component",
        "Statuspage (components)",
        "Payments",
        HIGH,
        "statuspage_component_operational",
    ),
    (
        "grafana_legacy_alerting",
        "Grafana (legacy alerting)",
        "Load of the databases",
        CRITICAL,
        "grafana_legacy_ok",
    ),
    ("pingdom_down", "Pingdom", "Shop", HIGH, "pingdom_up"),
    ("azure_fired", "Azure Monitor", "shop-cpu", LOW, "azure_resolved"),
    (
        "prometheus_array_firing",
        "Prometheus or vmalert",
        "CPU high on web-1",
        LOW,
        "prometheus_array_resolved",
    ),
    ("google_open", "Google Cloud Monitoring", "CPU of the shop", HIGH, "google_closed"),
)


def payload_of(name: str, folder: Path = PAYLOADS / "tools") -> dict[str, Any]:
    value = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    found = value[0] if isinstance(value, list) else value
    assert isinstance(found, dict)
    return found


def read(name: str) -> ParsedBody:
    payload = payload_of(name)
    proposal = propose_mapping(Messages(firing=payload))
    # The mapping is loaded as from the database.
    mapping = parse_mapping(json.loads(json.dumps(proposal.mapping.stored)))
    posted = [payload] if name.startswith("prometheus_array") else payload
    return proposal.format.parse(posted, now=NOW, reading=READING, mapping=mapping)


def alert_of(name: str) -> IncomingAlert:
    (alert,) = read(name).alerts
    return alert


@pytest.mark.parametrize(("name", "tool", "title", "severity", "recovery"), TOOLS)
def test_a_tool_is_recognized_and_its_recovery_finds_its_alert(
    name: str, tool: str, title: str, severity: Severity, recovery: str | None
) -> None:
    assert propose_mapping(Messages(firing=payload_of(name))).tool == tool
    alert = alert_of(name)
    assert (alert.title, alert.severity, alert.ended_at) == (title, severity, None)
    assert alert.parse_warnings == ()
    if recovery is not None:
        over = alert_of(recovery)
        assert over.ended_at is not None
        assert over.fingerprint == alert.fingerprint
    found = recognize_messages(
        MessageTexts(sample=json.dumps(payload_of(name))), now=NOW, reading=READING
    )
    assert found.preview.resolves_seldom is None
    assert (found.preview.never_resolves is None) == (recovery is not None)


def test_every_preset_has_a_body() -> None:
    read_as_they_are = {"Grafana", "Prometheus Alertmanager", "PagerDuty Events API"}
    assert {tool for _, tool, *_ in TOOLS} | read_as_they_are == {
        each.name for of in FORMATS for each in of.tools
    }


def test_bodies_without_an_alert_are_dropped_and_counted() -> None:
    parsed = read("nagios_downtime")
    assert (parsed.alerts, parsed.dropped) == ((), 1)
    preview = recognize_messages(
        MessageTexts(sample=json.dumps(payload_of("nagios_downtime"))), now=NOW, reading=READING
    )
    assert preview.preview.alert is None


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("grafana", "Grafana"),
        ("01_firing_unicode_bearer", "Prometheus Alertmanager"),
        ("monit", "Monit"),
        ("apprise", "Apprise"),
    ],
)
def test_bodies_of_real_senders_are_recognized(name: str, tool: str) -> None:
    found = recognize_messages(
        MessageTexts(sample=json.dumps(payload_of(name, PAYLOADS))), now=NOW, reading=READING
    )
    assert found.proposal.tool == tool
    is_webhook = tool in {"Grafana", "Prometheus Alertmanager"}
    wanted = PROMETHEUS if is_webhook else HTTP
    assert found.proposal.format is wanted
    assert found.preview.alert is not None


def test_a_mapping_is_derived_from_the_names_of_the_keys() -> None:
    sample = {
        "event": {"name": "Disk full", "prio": "warning", "state": "problem"},
        "node": "db-1",
        "incident_id": 7,
    }
    found = recognize_messages(MessageTexts(sample=json.dumps(sample)), now=NOW, reading=READING)
    assert found.proposal.tool is None
    alert = found.preview.alert
    assert alert is not None
    assert (alert.title, alert.severity) == ("Disk full", "low")
    assert alert.fields["hosts"] == "db-1"
    assert found.preview.never_resolves is None
    over = {**sample, "event": {"name": "x", "prio": "info", "state": "OK"}}
    parsed = HTTP.parse(over, now=NOW, reading=READING, mapping=found.proposal.mapping)
    assert parsed.alerts[0].ended_at == NOW
    assert parsed.alerts[0].fingerprint_source == "the incident_id field"
