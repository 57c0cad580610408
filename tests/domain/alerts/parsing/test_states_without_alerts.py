"""Alerts without data, and a warning about formats without a recovery."""

import json
from datetime import UTC, datetime

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.integrations.message_recognition import recognize_messages
from domain.alerts.integrations.samples import MessageTexts
from tests.support.alerts.senders import item, webhook

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)


def test_an_alert_without_data_of_grafana_has_the_name_of_its_rule() -> None:
    labels = {"alertname": "DatasourceNoData", "rulename": "Load of db-1"}
    named = json.loads(webhook(item("x", labels=labels), item("y", labels={"alertname": "y"})))
    parsed = PROMETHEUS.parse(named, now=NOW, reading=READING)
    assert [each.title for each in parsed.alerts] == ["Load of db-1", "y"]


def test_recognition_warns_if_a_format_never_resolves() -> None:
    own = HTTP.build_example_body(now=NOW)
    found = recognize_messages(MessageTexts(sample=own), now=NOW, reading=READING)
    assert found.preview.never_resolves is None
    foreign = recognize_messages(
        MessageTexts(sample='{"title": "Disk", "foo": 1}'), now=NOW, reading=READING
    )
    assert foreign.preview.never_resolves is not None
