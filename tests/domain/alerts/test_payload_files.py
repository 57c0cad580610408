"""Bodies as senders really post them, and what must become of each."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.alerts import fingerprint
from domain.alerts.body import read_object
from domain.alerts.details import flatten
from domain.alerts.incoming import IncomingAlert, NoValidItem, ParsedBody
from domain.alerts.payloads import generic, prometheus

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PAYLOADS = Path(__file__).parents[2] / "payloads"

GENERIC = ("apprise.json", "monit.json")


def body_of(name: str) -> dict[str, Any]:
    return read_object((PAYLOADS / name).read_bytes(), nesting_limit=100)


def parse(name: str) -> ParsedBody:
    if name in GENERIC:
        return generic.parse(body_of(name), now=NOW, automatic_fingerprint=True)
    return prometheus.parse(body_of(name), now=NOW)


def at(day: int, hour: int, minute: int, second: int, microsecond: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, microsecond, tzinfo=UTC)


SUMMARY_01 = '磁盘使用率 > 90% — "quoted" <b>html</b> & \\backslash\\ \x01ctl'
LATENCY_QUERY = "histogram_quantile(0.99, rate(http_bucket[5m])) > 2"

UNICODE = {
    "title": SUMMARY_01,
    "description": "line1\nline2\ttab",
    "severity": "high",
    "state": "firing",
    "started_at": at(20, 18, 30, 0),
    "ended_at": None,
    "service": None,
    "monitoring_tool": "Prometheus",
    "hosts": ("сервер-1",),
    "environment": None,
    "fingerprint": fingerprint.of_value("cca1528f1c10e012"),
    "fingerprint_source": "the item's own fingerprint",
    "severity_reason": "severity is “HIGH”",
    "runbook": None,
    "query": None,
    "markdown": "## Heading\n* item\n",
    "y_label": SUMMARY_01,
    "generator_url": None,
    "remarks": (),
    "item_index": 0,
}


def latency(
    index: int, host: str, severity: str, identity: str, **changes: object
) -> dict[str, object]:
    return {
        "title": "p99 high",
        "severity": severity,
        "state": "firing",
        "started_at": at(21, 7, 52, 39, 502249),
        "ended_at": None,
        "hosts": (host,),
        "fingerprint": fingerprint.of_value(identity),
        "runbook": None,
        "query": None,
        "remarks": (),
        "item_index": index,
        **changes,
    }


def down(index: int, identity: str, **changes: object) -> dict[str, object]:
    instance = f"127.0.0.1:{index + 1}"
    return {
        "title": f"Instance {instance} down",
        "description": f"{instance} of job dead value 0",
        "severity": "high",
        "severity_reason": "severity is “page”",
        "state": "firing",
        "started_at": at(21, 7, 54, 31, 632000),
        "ended_at": None,
        "hosts": (instance,),
        "fingerprint": fingerprint.of_value(identity),
        "runbook": "https://r.example/down",
        "query": 'up{job="dead"} == 0',
        "remarks": (),
        "item_index": index,
        **changes,
    }


WEB_1 = {"runbook": "https://r.example/hl", "query": LATENCY_QUERY}
OVER = {"state": "recovery", "ended_at": at(21, 7, 52, 59, 502249)}
BACK = {"state": "recovery", "ended_at": at(21, 7, 54, 42, 632000)}
FLASH = {"state": "recovery", "started_at": at(21, 7, 53, 12), "ended_at": at(21, 7, 53, 12)}
LATER = {"started_at": at(21, 7, 53, 12, 737053)}

EXPECTED: dict[str, list[dict[str, object]]] = {
    "01_firing_unicode_bearer.json": [UNICODE],
    "10_resolved_unicode.json": [
        {**UNICODE, "state": "recovery", "ended_at": at(21, 7, 52, 59, 511140)}
    ],
    "04_grouped_3_firing_common_labels.json": [
        latency(0, "web-1", "critical", "2b27196bc75881f1", **WEB_1),
        latency(1, "web-2", "critical", "7958cf496160cd4e"),
        latency(2, "web-3", "low", "87eb258da44b6e4c"),
    ],
    "11_resolved_grouped_3.json": [
        latency(0, "web-1", "critical", "2b27196bc75881f1", **WEB_1, **OVER),
        latency(1, "web-2", "critical", "7958cf496160cd4e", **OVER),
        latency(2, "web-3", "low", "87eb258da44b6e4c", **OVER),
    ],
    "13_mixed_group_one_resolved_two_firing.json": [
        latency(0, "web-1", "critical", "2b27196bc75881f1", **FLASH),
        latency(1, "web-2", "critical", "7958cf496160cd4e", **LATER),
        latency(2, "web-3", "low", "87eb258da44b6e4c", **LATER, title="p99 CHANGED"),
    ],
    "05_truncated_max_alerts_2_of_5.json": [
        {
            "title": "Many",
            "severity": "critical",
            "severity_reason": "missing, so critical",
            "state": "firing",
            "hosts": (host,),
            "fingerprint": fingerprint.of_value(identity),
            "item_index": index,
        }
        for index, host, identity in ((0, "a", "fd87f781d4674625"), (1, "b", "6ae94dc992802a94"))
    ],
    "17_prometheus_instance_down_2.json": [
        down(0, "87cc2afe1e91ce32"),
        down(1, "2173a00f330de9d3"),
    ],
    "18_prometheus_resolved_2.json": [
        down(0, "87cc2afe1e91ce32", **BACK),
        down(1, "2173a00f330de9d3", **BACK),
    ],
    "grafana.json": [
        {
            "title": "mem 97%",
            "severity": "critical",
            "state": "firing",
            "started_at": datetime(2026, 10, 12, 7, 51, 3, 157076, tzinfo=UTC),
            "ended_at": None,
            "hosts": (),
            "fingerprint": fingerprint.of_value("c6eadffa33fcdf37"),
            "runbook": "https://r.example/mem",
            "generator_url": "https://g.example/alerting/grafana/abc/view?orgId=1",
            "query": None,
            "item_index": 0,
        },
        {
            "title": "High CPU usage",
            "severity": "critical",
            "severity_reason": "missing, so critical",
            "state": "recovery",
            "ended_at": datetime(2026, 10, 12, 8, 1, 3, tzinfo=UTC),
            "fingerprint": fingerprint.of_value("bc97ff14869b13e3"),
            "item_index": 1,
        },
    ],
    "apprise.json": [
        {
            "title": "Disk full 磁盘",
            "description": None,
            "severity": "critical",
            "state": "firing",
            "started_at": NOW,
            "hosts": (),
            "fingerprint_source": "the whole payload without start_time, end_time, hosts",
            "remarks": (),
        }
    ],
    "monit.json": [
        {
            "title": "New: Alert",
            "description": None,
            "severity": "critical",
            "severity_reason": "missing, so critical",
            "state": "firing",
            "started_at": NOW,
            "service": None,
            "monitoring_tool": None,
            "hosts": (),
            "remarks": (),
        }
    ],
}


def seen(alert: IncomingAlert, expected: dict[str, object]) -> dict[str, object]:
    return {name: getattr(alert, name) for name in expected}


@pytest.mark.spec("I1", "I11", "I12", "I13", "I14", "I15")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_body_becomes_these_alerts(name: str) -> None:
    parsed = parse(name)
    assert parsed.refused == ()
    assert len(parsed.alerts) == len(EXPECTED[name])
    for alert, expected in zip(parsed.alerts, EXPECTED[name], strict=True):
        assert seen(alert, expected) == expected


def test_every_file_is_expected_somewhere() -> None:
    files = {path.name for path in PAYLOADS.glob("*.json")}
    assert files == {*EXPECTED, "07_no_alertname_label_send_resolved_false.json"}


@pytest.mark.spec("I12")
def test_an_item_without_any_title_is_refused_with_a_reason() -> None:
    with pytest.raises(NoValidItem) as refusal:
        parse("07_no_alertname_label_send_resolved_false.json")
    (refused,) = refusal.value.refused
    assert refused.item_index == 0
    assert refused.reason.startswith("it has no title")


def test_alerts_that_the_sender_left_out_are_told() -> None:
    parsed = parse("05_truncated_max_alerts_2_of_5.json")
    assert parsed.truncated_alerts == 3
    assert parsed.remarks == (
        "The sender left out 3 more alerts (truncatedAlerts); raise its max_alerts.",
    )
    assert parse("grafana.json").truncated_alerts == 0


@pytest.mark.spec("I8", "I17")
@pytest.mark.parametrize(
    ("firing", "recovery"),
    [
        ("01_firing_unicode_bearer.json", "10_resolved_unicode.json"),
        ("04_grouped_3_firing_common_labels.json", "11_resolved_grouped_3.json"),
        ("17_prometheus_instance_down_2.json", "18_prometheus_resolved_2.json"),
    ],
)
def test_a_real_recovery_identifies_what_it_ends(firing: str, recovery: str) -> None:
    opened = [alert.fingerprint for alert in parse(firing).alerts]
    assert opened == [alert.fingerprint for alert in parse(recovery).alerts]


@pytest.mark.spec("I3", "J5")
def test_a_body_of_unknown_fields_is_shown_whole() -> None:
    assert flatten(body_of("monit.json")) == (
        ("MONIT_SERVICE", "testfile"),
        ("MONIT_DATE", "Sat, 21 Nov 2026 08:27:28"),
        ("MONIT_DESCRIPTION", "file doesn't exist"),
        ("MONIT_HOST", "vm"),
        ("MONIT_EVENT", "Does not exist"),
    )


@pytest.mark.spec("I13", "J5")
def test_annotations_without_a_meaning_of_their_own_are_shown() -> None:
    lines = flatten(prometheus.shown_part(body_of("01_firing_unicode_bearer.json"), 0))
    assert ("annotations.nested", '{"a":{"b":[1,2]}}') in lines
    values = flatten(prometheus.shown_part(body_of("grafana.json"), 0))
    assert ("values.C", "1") in values
