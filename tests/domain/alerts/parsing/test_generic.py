from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.formats import http_endpoint
from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.incoming_alert import AlertState, IncomingAlert, Severity
from domain.alerts.parsing.json_body import LongNumber, parse_body_object
from tests.domain.alerts.parsing.strategies import NOW, field_values, json_values, posted, texts
from tests.support.wire.garbage import bounded


def read(body: dict[str, Any]) -> IncomingAlert:
    parsed = http_endpoint.parse_items([body], now=NOW, automatic_fingerprint=True)
    assert (parsed.refused, parsed.truncated_alerts, parsed.parse_warnings) == ((), 0, ())
    (alert,) = parsed.alerts
    return alert


@pytest.mark.spec("I3", "I4", "I6")
def test_an_empty_object_is_an_alert_with_every_default() -> None:
    assert read({}) == IncomingAlert(
        title="New: Alert",
        description=None,
        severity=Severity.CRITICAL,
        state=AlertState.FIRING,
        started_at=NOW,
        ended_at=None,
        service=None,
        monitoring_tool=None,
        hosts=(),
        environment=None,
        fingerprint=fingerprint.compute_fingerprint("payload", {}),
        fingerprint_source="the whole payload without start_time, end_time, hosts",
        severity_reason="No severity: treated as critical",
        runbook=None,
        query=None,
        markdown=None,
        y_label=None,
        generator_url=None,
        parse_warnings=(),
        item_index=0,
        left_out=frozenset({"title", "severity", "started_at"}),
    )


@pytest.mark.spec("I3", "I4", "I5", "I6", "I7", "I10")
def test_every_field_is_read() -> None:
    alert = read(
        {
            "title": "Disk full",
            "description": "98 % of /var",
            "start_time": "2026-11-21T07:52:39+01:00",
            "end_time": "2026-11-21T08:00:00Z",
            "service": "database",
            "monitoring_tool": "Nagios",
            "hosts": ["db-1", "db-2"],
            "severity": "High",
            "fingerprint": "disk-db-1",
            "platform_environment_name": "production",
            "runbook": "https://runbooks.example/disk",
            "source_url": "https://monitor.example/alerts/5",
            "anything": {"else": [1, 2]},
        }
    )
    assert alert == IncomingAlert(
        title="Disk full",
        description="98 % of /var",
        severity=Severity.HIGH,
        state=AlertState.RECOVERY,
        started_at=datetime(2026, 11, 21, 6, 52, 39, tzinfo=UTC),
        ended_at=datetime(2026, 11, 21, 8, 0, tzinfo=UTC),
        service="database",
        monitoring_tool="Nagios",
        hosts=("db-1", "db-2"),
        environment="production",
        fingerprint=fingerprint.compute_sender_fingerprint("disk-db-1"),
        fingerprint_source="the fingerprint field",
        severity_reason="reported as “High”",
        runbook="https://runbooks.example/disk",
        query=None,
        markdown=None,
        y_label=None,
        generator_url="https://monitor.example/alerts/5",
        parse_warnings=(),
        item_index=0,
    )


@pytest.mark.spec("I4")
@pytest.mark.parametrize("blank", [None, "", " \t\n", [], {}])
def test_a_blank_title_becomes_the_default_title(blank: object) -> None:
    assert read({"title": blank}).title == "New: Alert"


@pytest.mark.spec("I3")
@pytest.mark.parametrize(
    ("value", "title"),
    [
        (0, "0"),
        (False, "false"),
        ({"text": "Disk"}, '{"text":"Disk"}'),
        (LongNumber("1e400"), "1e400"),
        ("{0} %s {{ 7*7 }}", "{0} %s {{ 7*7 }}"),
    ],
)
def test_a_title_of_another_type_becomes_text(value: object, title: str) -> None:
    assert read({"title": value}).title == title


@pytest.mark.parametrize(
    ("name", "length"),
    [("title", 200), ("description", 1000), ("service", 100), ("monitoring_tool", 100)],
)
def test_a_long_text_is_cut_to_its_column(name: str, length: int) -> None:
    assert getattr(read({name: "x" * length}), name) == "x" * length
    assert getattr(read({name: "x" * (length + 1)}), name) == "x" * (length - 1) + "…"


@pytest.mark.spec("I7")
def test_hosts_have_at_most_255_characters_together() -> None:
    assert read({"hosts": "db-1"}).hosts == ("db-1",)
    assert read({"hosts": ["x" * 200, "y" * 100]}).hosts == ("x" * 200, "y" * 54 + "…")


@pytest.mark.spec("I10")
def test_the_second_spelling_of_the_environment_is_read_too() -> None:
    assert read({"gitlab_environment_name": "staging"}).environment == "staging"
    both = {"platform_environment_name": "production", "gitlab_environment_name": "staging"}
    assert read(both).environment == "production"
    assert read({**both, "platform_environment_name": " "}).environment == "staging"


@pytest.mark.spec("I5")
@pytest.mark.parametrize("end", ["2026-11-21T08:00:00Z", "2099-01-01T00:00:00Z", 1795247559000])
def test_any_valid_end_resolves_the_alert(end: object) -> None:
    assert read({"end_time": end}).state is AlertState.RECOVERY


@pytest.mark.spec("I5")
@pytest.mark.parametrize("end", [None, "", "0001-01-01T00:00:00Z", "never", 0, True, {}])
def test_an_invalid_end_does_not_resolve_the_alert(end: object) -> None:
    alert = read({"end_time": end, "status": "resolved"})
    assert (alert.state, alert.ended_at) == (AlertState.FIRING, None)


@pytest.mark.spec("I4", "I5")
def test_each_invalid_time_causes_a_warning() -> None:
    alert = read({"start_time": "half past nine", "end_time": ["soon"]})
    assert (alert.started_at, alert.ended_at) == (NOW, None)
    assert alert.parse_warnings == (
        "start_time could not be read: “half past nine”, so the time of arrival is used.",
        'end_time could not be read: “["soon"]”, so it is ignored.',
    )


@pytest.mark.spec("I8")
def test_a_recovery_has_the_fingerprint_of_its_alert() -> None:
    firing = read({"title": "Disk full", "fingerprint": ["disk", "db-1"]})
    recovery = read({"fingerprint": ["disk", "db-1"], "end_time": "2026-11-21T08:00:00Z"})
    assert firing.fingerprint == recovery.fingerprint


@pytest.mark.spec("I9")
def test_the_same_payload_with_an_end_has_the_same_fingerprint() -> None:
    firing = read({"title": "Disk full", "hosts": "db-1"})
    recovery = read({"title": "Disk full", "end_time": "2026-11-21T08:00:00Z"})
    assert firing.fingerprint == recovery.fingerprint
    assert firing.fingerprint != read({"title": "Disk fuller"}).fingerprint


@pytest.mark.spec("I9")
def test_without_automatic_fingerprints_only_sent_ones_are_used() -> None:
    for body in ({}, {"fingerprint": ""}, {"fingerprint": {"a": 1}}):
        parsed = http_endpoint.parse_items([body], now=NOW, automatic_fingerprint=False)
        assert parsed.alerts[0].fingerprint is None
        assert parsed.alerts[0].fingerprint_source == "none, because grouping is turned off"
    sent = http_endpoint.parse_items([{"fingerprint": 17}], now=NOW, automatic_fingerprint=False)
    assert sent.alerts[0].fingerprint == fingerprint.compute_sender_fingerprint("17")


def test_a_fingerprint_of_an_unusable_type_causes_a_warning() -> None:
    assert read({"fingerprint": True}).parse_warnings == (
        "fingerprint is not a string, number or array: “true”, so it is ignored.",
    )
    assert read({"fingerprint": None}).parse_warnings == ()


FIELDS = (
    "title",
    "description",
    "start_time",
    "end_time",
    "service",
    "monitoring_tool",
    "hosts",
    "severity",
    "fingerprint",
    "platform_environment_name",
    "gitlab_environment_name",
    "runbook",
)


def assert_fits(alert: IncomingAlert) -> None:
    limits = {
        "title": 200,
        "description": 1000,
        "service": 100,
        "monitoring_tool": 100,
        "environment": 255,
    }
    for name, limit in limits.items():
        assert len(getattr(alert, name) or "") <= limit
    assert len("".join(alert.hosts)) <= 255
    assert (alert.ended_at is None) is (alert.state is AlertState.FIRING)
    assert alert.started_at.tzinfo is UTC
    assert alert.fingerprint is None or len(alert.fingerprint) == 32
    for text in (repr(alert), *filter(None, (alert.title, alert.runbook, *alert.parse_warnings))):
        text.encode()
        assert "\x00" not in text


@pytest.mark.long
@pytest.mark.spec("I3")
@bounded(30)
@given(
    body=st.dictionaries(st.sampled_from(FIELDS), field_values)
    | st.dictionaries(texts, json_values, max_size=4),
    automatic_fingerprint=st.booleans(),
)
def test_any_value_in_any_field_results_in_a_storable_alert(
    body: dict[str, Any], *, automatic_fingerprint: bool
) -> None:
    received = parse_body_object(posted(body), nesting_limit=100)
    parsed = http_endpoint.parse_items(
        [received], now=NOW, automatic_fingerprint=automatic_fingerprint
    )
    (alert,) = parsed.alerts
    assert alert.title
    assert_fits(alert)
