from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.formats import prometheus
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.incoming_alert import (
    AlertState,
    IncomingAlert,
    MissingAttributesError,
    NoValidItemError,
    RejectedAlertItem,
    Severity,
)
from domain.alerts.parsing.json_body import parse_body_object
from tests.domain.alerts.parsing.metrics import (
    START,
    STARTED_AT,
    item,
    read,
    webhook,
    with_annotations,
    with_labels,
)
from tests.domain.alerts.parsing.strategies import NOW, field_values, json_values, posted
from tests.domain.alerts.parsing.test_generic import assert_fits
from tests.support.wire.garbage import bounded


@pytest.mark.spec("I12", "I13", "I14")
def test_an_item_with_only_required_attributes() -> None:
    assert read() == IncomingAlert(
        title="HighLatency",
        description=None,
        severity=Severity.CRITICAL,
        state=AlertState.FIRING,
        started_at=STARTED_AT,
        ended_at=None,
        service=None,
        monitoring_tool="Prometheus",
        hosts=(),
        environment=None,
        fingerprint=fingerprint.compute_fingerprint("labels", {"alertname": "HighLatency"}),
        fingerprint_source="its labels",
        severity_reason="No severity: treated as critical",
        runbook=None,
        query=None,
        markdown=None,
        y_label="HighLatency",
        generator_url=None,
        parse_warnings=(),
        item_index=0,
        left_out=frozenset({"severity"}),
    )


@pytest.mark.spec("I11")
@pytest.mark.parametrize("name", prometheus.REQUIRED_ATTRIBUTES)
def test_each_top_level_attribute_is_required_and_named(name: str) -> None:
    body = webhook(item())
    del body[name]
    with pytest.raises(MissingAttributesError) as refusal:
        prometheus.parse_webhook_items(body, now=NOW)
    assert refusal.value.names == (name,)
    assert name in str(refusal.value)


@pytest.mark.spec("I11")
def test_all_missing_attributes_are_named() -> None:
    with pytest.raises(MissingAttributesError) as refusal:
        prometheus.parse_webhook_items({"title": "not a webhook"}, now=NOW)
    assert refusal.value.names == (
        "alerts",
        "commonAnnotations",
        "commonLabels",
        "externalURL",
        "groupKey",
        "groupLabels",
        "receiver",
        "status",
        "version",
    )


@pytest.mark.spec("I11")
def test_a_required_attribute_may_be_empty_or_null() -> None:
    body = webhook(item(), groupKey="", receiver=None, commonLabels=None, version="1")
    assert len(prometheus.parse_webhook_items(body, now=NOW).alerts) == 1


@pytest.mark.spec("I11")
@pytest.mark.parametrize("alerts", [None, {}, "text", 5])
def test_alerts_must_be_an_array(alerts: object) -> None:
    with pytest.raises(MissingAttributesError) as refusal:
        prometheus.parse_webhook_items(webhook(alerts=alerts), now=NOW)
    assert refusal.value.names == ("alerts (an array)",)


@pytest.mark.spec("I11")
def test_a_webhook_without_items_is_rejected() -> None:
    with pytest.raises(NoValidItemError, match="alerts is empty") as refusal:
        prometheus.parse_webhook_items(webhook(), now=NOW)
    assert refusal.value.refused == ()


@pytest.mark.spec("I11")
def test_each_item_is_a_separate_alert() -> None:
    body = webhook(item(), item(labels={"alertname": "DiskFull"}))
    alerts = prometheus.parse_webhook_items(body, now=NOW).alerts
    assert [(alert.title, alert.item_index) for alert in alerts] == [
        ("HighLatency", 0),
        ("DiskFull", 1),
    ]


@pytest.mark.spec("I12")
def test_the_title_is_the_first_non_blank_one() -> None:
    assert with_annotations(title="One", summary="Two").title == "One"
    assert with_annotations(title=" ", summary="Two").title == "Two"
    assert with_annotations(title=None, summary="").title == "HighLatency"
    assert with_annotations(summary=5).title == "5"
    assert with_annotations(title="x" * 201).title == "x" * 199 + "…"


@pytest.mark.spec("I12")
@pytest.mark.parametrize(
    ("invalid", "reason"),
    [
        (
            item(labels={"instance": "web-1"}),
            (
                "it has no title: none of annotations.title, annotations.summary "
                "and labels.alertname is present"
            ),
        ),
        (item(startsAt=None), "startsAt is missing"),
        (item(startsAt=""), "startsAt is missing"),
        ({"labels": {"alertname": "HighLatency"}}, "startsAt is missing"),
        (item(labels="alertname"), "labels is not an object"),
        (item(annotations=["title"]), "annotations is not an object"),
        ("HighLatency", "it is not an object"),
        (None, "it is not an object"),
        ([], "it is not an object"),
    ],
)
def test_an_invalid_item_does_not_affect_other_items(invalid: Any, reason: str) -> None:
    parsed = prometheus.parse_webhook_items(webhook(item(), invalid, item()), now=NOW)
    assert [alert.item_index for alert in parsed.alerts] == [0, 2]
    assert parsed.refused == (RejectedAlertItem(item_index=1, reason=reason),)


@pytest.mark.spec("I12")
def test_without_any_valid_item_each_has_its_reason() -> None:
    with pytest.raises(NoValidItemError) as refusal:
        prometheus.parse_webhook_items(webhook(item(startsAt=None), 5), now=NOW)
    assert refusal.value.refused == (
        RejectedAlertItem(item_index=0, reason="startsAt is missing"),
        RejectedAlertItem(item_index=1, reason="it is not an object"),
    )


@pytest.mark.spec("I13")
def test_the_annotations_of_the_table_are_read() -> None:
    alert = with_annotations(
        description="p99 above 2 s",
        runbook="https://runbooks.example/latency",
        platform_incident_markdown="## What to do\n" + "x" * 2000,
        platform_y_label="seconds",
    )
    assert alert.description == "p99 above 2 s"
    assert alert.runbook == "https://runbooks.example/latency"
    assert alert.markdown == "## What to do\n" + "x" * 2000
    assert alert.y_label == "seconds"


@pytest.mark.spec("I13")
def test_the_second_spelling_is_read_too() -> None:
    alert = with_annotations(gitlab_incident_markdown="## Do", gitlab_y_label="seconds")
    assert (alert.markdown, alert.y_label) == ("## Do", "seconds")
    assert with_labels(gitlab_environment_name="staging").environment == "staging"


@pytest.mark.spec("I13")
def test_the_y_label_falls_back_to_the_title() -> None:
    assert with_annotations(summary="p99 high").y_label == "p99 high"
    assert with_annotations(platform_y_label=" ").y_label == "HighLatency"


@pytest.mark.spec("I10", "I13", "I14")
def test_the_labels_of_the_table_are_read() -> None:
    alert = with_labels(platform_environment_name="production", severity="Page")
    assert alert.environment == "production"
    assert alert.severity is Severity.HIGH
    assert alert.severity_reason == "reported as “Page”"


def test_service_and_hosts_are_read_from_common_labels() -> None:
    alert = with_labels(service="shop", instance="web-1:9100", host="web-1")
    assert (alert.service, alert.hosts) == ("shop", ("web-1:9100", "web-1"))
    assert with_labels(instance="web-1", host="web-1").hosts == ("web-1",)
    assert with_annotations(runbook_url="https://runbooks.example").runbook is not None


@pytest.mark.spec("I13")
@pytest.mark.parametrize("name", ["generatorURL", "generatorUrl"])
def test_the_query_comes_from_the_generator_address(name: str) -> None:
    url = "http://prom.example/graph?g0.tab=1&g0.expr=rate%28http%5B5m%5D%29+%3E+2&g0.expr=b#x"
    alert = read(**{name: url})
    assert alert.query == "rate(http[5m]) > 2"
    assert alert.generator_url == url


@pytest.mark.spec("I13")
@pytest.mark.parametrize(
    ("url", "query"),
    [
        ("", None),
        (None, None),
        ("http://prom.example/graph", None),
        ("http://prom.example/graph?g0.expr=", None),
        ("http://prom.example/graph?ag0.expr=up", None),
        ("http://prom.example/#?g0.expr=up", None),
        ("http://[::1/graph?g0.expr=up%3", "up%3"),
        ("?g0.expr=%ff%00", "\ufffd\ufffd"),
        ("?g0.expr=a%ED%A0%80b", "a\ufffdb"),
        ("?g0.expr=磁+%E7%9B%98", "磁 盘"),
        ({"g0.expr=": 1}, None),
    ],
)
def test_an_unusual_generator_url_is_harmless(url: object, query: str | None) -> None:
    assert read(generatorURL=url).query == query


@pytest.mark.spec("I8")
def test_the_fingerprint_of_the_item_comes_first() -> None:
    alert = read(fingerprint="cca1528f1c10e012")
    assert alert.fingerprint == fingerprint.compute_sender_fingerprint("cca1528f1c10e012")
    assert alert.fingerprint_source == "the item's own fingerprint"
    assert read(fingerprint=17).fingerprint == fingerprint.compute_sender_fingerprint("17")


@pytest.mark.spec("I8")
@pytest.mark.parametrize("useless", [None, "", [], ["a"], {"a": 1}, True])
def test_without_a_fingerprint_the_labels_identify_the_alert(useless: object) -> None:
    one = read(fingerprint=useless, labels={"alertname": "Down", "instance": "a"})
    same = read(labels={"instance": "a", "alertname": "Down"}, startsAt="2026-11-20T00:00:00Z")
    other = read(labels={"alertname": "Down", "instance": "b"})
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.fingerprint_source == "its labels"


@pytest.mark.spec("I8")
@pytest.mark.parametrize("labels", [None, {}])
def test_without_labels_the_title_identifies_the_alert(labels: object) -> None:
    alert = read(labels=labels, annotations={"title": "Down"})
    assert alert.fingerprint == fingerprint.compute_fingerprint("title", "Down")
    assert alert.fingerprint_source == "its title"


@pytest.mark.parametrize(
    ("sent", "count"),
    [(0, 0), (3, 3), (-1, 0), (2**40, 2**31 - 1), (True, 0), ("3", 0), (None, 0), ([], 0)],
)
def test_alerts_that_the_sender_omitted_are_counted(sent: object, count: int) -> None:
    parsed = prometheus.parse_webhook_items(webhook(item(), truncatedAlerts=sent), now=NOW)
    assert parsed.truncated_alerts == count
    assert len(parsed.parse_warnings) == bool(count)


def test_thousands_of_items_are_all_read() -> None:
    body = webhook(*(item(fingerprint=str(number)) for number in range(2_000)))
    assert (
        len({alert.fingerprint for alert in prometheus.parse_webhook_items(body, now=NOW).alerts})
        == 2_000
    )


@pytest.mark.spec("I13", "J5")
def test_the_page_of_an_alert_shows_its_item_annotations_first() -> None:
    body = webhook(item(), item(values={"B": 1}))
    shown = PROMETHEUS.get_displayed_payload(PROMETHEUS.reduce_body_to_item(body, 1))
    assert list(shown) == ["annotations", "labels", "status", "startsAt", "endsAt", "values"]
    assert list(PROMETHEUS.get_displayed_payload(webhook({"startsAt": START}))) == ["startsAt"]


LABELS = st.sampled_from(
    (
        "alertname",
        "severity",
        "service",
        "instance",
        "host",
        "platform_environment_name",
    )
)
ANNOTATIONS = st.sampled_from(
    ("title", "summary", "description", "runbook", "platform_incident_markdown", "gitlab_y_label")
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(LABELS, field_values) | json_values,
        "annotations": st.dictionaries(ANNOTATIONS, field_values) | json_values,
        "startsAt": field_values,
        "endsAt": field_values,
        "status": field_values,
        "fingerprint": field_values,
        "generatorURL": field_values,
    },
)


def outcome(
    body: dict[str, Any],
) -> tuple[tuple[IncomingAlert, ...], tuple[RejectedAlertItem, ...]]:
    try:
        parsed = prometheus.parse_webhook_items(body, now=NOW)
    except NoValidItemError as refusal:
        return (), refusal.refused
    return parsed.alerts, parsed.refused


@pytest.mark.long
@bounded(30)
@given(st.lists(ITEMS | json_values, max_size=4), field_values)
def test_any_value_in_any_attribute_is_parsed_or_rejected(items: list[Any], other: Any) -> None:
    body = webhook(*items, truncatedAlerts=other, version=other, commonLabels=other)
    received = parse_body_object(posted(body), nesting_limit=100)
    alerts, refused = outcome(received)
    for alert in alerts:
        assert alert.title
        assert alert.fingerprint is not None
        assert_fits(alert)
    indexes = [alert.item_index for alert in alerts] + [other.item_index for other in refused]
    assert sorted(indexes) == list(range(len(items)))


@pytest.mark.long
@bounded(30)
@given(st.dictionaries(st.sampled_from(prometheus.REQUIRED_ATTRIBUTES), json_values))
def test_any_top_level_value_is_parsed_or_rejected(body: dict[str, Any]) -> None:
    received = parse_body_object(posted(body), nesting_limit=100)
    with pytest.raises((MissingAttributesError, NoValidItemError)) as refusal:
        prometheus.parse_webhook_items(received, now=NOW)
    assert str(refusal.value).endswith(".")
