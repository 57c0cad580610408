"""Messages that are neither a problem nor a recovery: no data, tests, expiring certificates."""

import json
from datetime import UTC, datetime
from typing import Any

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.integrations.recognized_samples import MessageTexts, recognize_messages
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.tools import propose_mapping
from tests.support.alerts.senders import PAYLOADS, item, webhook

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)


def tool(name: str) -> Any:
    return json.loads((PAYLOADS / "tools" / f"{name}.json").read_text(encoding="utf-8"))


def read_like(name: str, payload: dict[str, Any]) -> ParsedBody:
    mapping = propose_mapping(Messages(firing=tool(name))).mapping
    return HTTP.parse(payload, now=NOW, reading=READING, mapping=mapping)


def test_an_alert_without_data_of_grafana_has_the_name_of_its_rule() -> None:
    labels = {"alertname": "DatasourceNoData", "rulename": "Load of db-1"}
    named = json.loads(webhook(item("x", labels=labels), item("y", labels={"alertname": "y"})))
    parsed = PROMETHEUS.parse(named, now=NOW, reading=READING)
    assert [each.title for each in parsed.alerts] == ["Load of db-1", "y"]


def test_insufficient_data_of_cloudwatch_is_no_alert() -> None:
    alarm = tool("cloudwatch_alarm")
    message = {**json.loads(alarm["Message"]), "NewStateValue": "INSUFFICIENT_DATA"}
    parsed = read_like("cloudwatch_alarm", {**alarm, "Message": json.dumps(message)})
    assert (parsed.alerts, parsed.dropped) == ((), 1)


def test_messages_of_uptime_kuma_without_a_heartbeat_do_not_stay_open() -> None:
    for words in ("Hook Testing", "[Shop][https://shop.example] certificate will expire in 7 days"):
        message = {"heartbeat": None, "monitor": None, "msg": words}
        (alert,) = read_like("uptime_kuma_down", message).alerts
        assert alert.ended_at == NOW
    down = tool("uptime_kuma_down")
    (alert,) = read_like("uptime_kuma_down", {**down, "msg": "[Testing] [Down] certificate"}).alerts
    assert alert.ended_at is None


def test_recognition_warns_if_a_format_never_resolves() -> None:
    own = HTTP.build_example_body(now=NOW)
    found = recognize_messages(MessageTexts(sample=own), now=NOW, reading=READING)
    assert found.preview.never_resolves is None
    foreign = recognize_messages(
        MessageTexts(sample='{"title": "Disk", "foo": 1}'), now=NOW, reading=READING
    )
    assert foreign.preview.never_resolves is not None
