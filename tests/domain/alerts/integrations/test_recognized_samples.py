"""Recognition of recorded messages of real senders, and of the keys of unknown tools."""

import json
from datetime import UTC, datetime

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.integrations.message_recognition import recognize_messages
from domain.alerts.integrations.samples import MessageTexts
from tests.support.alerts.senders import PAYLOADS

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)


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
    sample = (PAYLOADS / f"{name}.json").read_text(encoding="utf-8")
    found = recognize_messages(MessageTexts(sample=sample), now=NOW, reading=READING)
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
    assert (alert.title, alert.severity) == ("Disk full: db-1", "low")
    assert alert.fields["hosts"] == "db-1"
    assert found.preview.never_resolves is None
    over = {**sample, "event": {"name": "x", "prio": "info", "state": "OK"}}
    parsed = HTTP.parse(over, now=NOW, reading=READING, mapping=found.proposal.mapping)
    assert parsed.alerts[0].ended_at == NOW
    assert parsed.alerts[0].fingerprint_source == "the incident_id field"
