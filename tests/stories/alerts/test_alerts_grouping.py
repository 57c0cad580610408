"""Lifecycle of alerts: opened, grouped and resolved."""

from datetime import UTC, datetime

import pytest

from tests.support.alerts.senders import connect, item, resolved, webhook
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell


@pytest.mark.spec("I8", "I16", "I17")
def test_an_alert_opens_counts_resolves_and_opens_again(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    first = endpoint.accepted(title="Disk full", fingerprint="disk")
    assert first == {"iid": 1, "title": "Disk full"}
    # The fingerprint identifies the alert; an open alert gets the latest title.
    still = {"iid": 1, "title": "Disk still full"}
    assert endpoint.accepted(title="Disk still full", fingerprint="disk") == still
    assert endpoint.accepted(fingerprint="disk", end_time="2999-11-21T09:00:00Z") == still
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.status, alert.events) == ("resolved", 2)
    assert alert.ended_at == datetime(2999, 11, 21, 9, tzinfo=UTC)
    again = endpoint.accepted(title="Disk full again", fingerprint="disk")
    assert again == {"iid": 2, "title": "Disk full again"}
    log = list_stored_deliveries(gatebell, endpoint.project)
    outcomes = [(row.opened, row.joined, row.resolved) for row in log]
    assert outcomes == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]


@pytest.mark.spec("I9", "I16")
def test_without_a_fingerprint_the_payload_identifies_the_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    assert endpoint.accepted(title="a", extra={"b": 1}, hosts="web-1")["iid"] == 1
    same = endpoint.accepted(
        extra={"b": 1}, title="a", hosts=["web-2"], start_time="2026-11-21T07:00:00Z"
    )
    assert same["iid"] == 1
    assert endpoint.accepted(title="a", extra={"b": 2})["iid"] == 2
    over = endpoint.accepted(title="a", extra={"b": 1}, end_time="2026-11-21T08:00:00Z")
    assert over["iid"] == 1


@pytest.mark.spec("I17")
def test_a_recovery_without_an_alert_is_stored_as_a_resolved_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    ended = {"fingerprint": "gone", "end_time": "2026-11-21T08:00:00Z"}
    assert endpoint.accepted(title="Unknown", **ended) == {"iid": 1, "title": "Unknown"}
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.status, alert.events) == ("resolved", 1)
    # A repeated recovery finds the alert and does not change it.
    assert endpoint.accepted(title="Other words", **ended) == {"iid": 1, "title": "Unknown"}
    (same,) = list_stored_alerts(gatebell, endpoint.project)
    assert (same.status, same.events, same.ended_at) == ("resolved", 1, alert.ended_at)


@pytest.mark.spec("I8")
def test_projects_do_not_share_fingerprints(gatebell: LiveGatebell) -> None:
    one, other = connect(gatebell), connect(gatebell)
    assert one.accepted(fingerprint="x")["iid"] == 1
    assert other.accepted(fingerprint="x")["iid"] == 1
    assert other.accepted(fingerprint="x", end_time="2026-11-21T08:00:00Z")["iid"] == 1
    (alert,) = list_stored_alerts(gatebell, one.project)
    assert alert.status == "triggered"


@pytest.mark.spec("I8")
def test_integrations_of_a_project_share_numbers_but_not_fingerprints(
    gatebell: LiveGatebell,
) -> None:
    one = connect(gatebell)
    other = connect(gatebell, one.project, name="Other")
    assert one.accepted(fingerprint="x")["iid"] == 1
    assert other.accepted(fingerprint="y")["iid"] == 2
    assert other.accepted(fingerprint="x")["iid"] == 3
    assert one.accepted(fingerprint="x")["iid"] == 1


@pytest.mark.spec("I1", "I11", "I15")
def test_a_batch_may_contain_firing_and_resolved_items(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    assert endpoint.post(webhook(item("a"), item("b"))).json() == answered((1, "a"), (2, "b"))
    answer = endpoint.post(webhook(item("c"), resolved("b"), item("a"), item("d")))
    assert answer.json() == answered((3, "c"), (2, "b"), (1, "a"), (4, "d"))
    assert summary(gatebell, endpoint.project) == [
        ("a", "triggered", 2),
        ("b", "resolved", 1),
        ("c", "triggered", 1),
        ("d", "triggered", 1),
    ]


@pytest.mark.spec("I1", "I16")
def test_the_response_lists_an_alert_of_several_items_once(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    again = item("b", startsAt="2026-11-21T09:00:00Z")
    answer = endpoint.post(webhook(item("a"), item("b"), item("a"), resolved("b"), again))
    assert answer.json() == answered((1, "a"), (2, "b"), (3, "b"))
    assert summary(gatebell, endpoint.project) == [
        ("a", "triggered", 2),
        ("b", "resolved", 1),
        ("b", "triggered", 1),
    ]


@pytest.mark.spec("I12")
def test_an_invalid_item_does_not_affect_other_items(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    nameless = item("x", labels={}, annotations={})
    timeless = item("y", startsAt=None)
    answer = endpoint.post(webhook(nameless, item("good"), "nonsense", timeless))
    assert answer.json() == answered((1, "good"))
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert [warning.partition(":")[0] for warning in delivery.parse_warnings] == [
        "Item 1 was rejected",
        "Item 3 was rejected",
        "Item 4 was rejected",
    ]


@pytest.mark.spec("I12")
def test_a_webhook_without_valid_items_is_rejected_with_a_reason_for_each(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    answer = endpoint.post(webhook(item("x", labels={}), "nonsense"))
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {
            "item": 0,
            "reason": "it has no title: none of annotations.title, annotations.summary "
            "and labels.alertname is present",
        },
        {"item": 1, "reason": "it is not an object"},
    ]
    assert list_stored_alerts(gatebell, endpoint.project) == []


def summary(gatebell: LiveGatebell, project: str) -> list[tuple[str, str, int]]:
    return [
        (alert.title, alert.status, alert.events) for alert in list_stored_alerts(gatebell, project)
    ]


def answered(*pairs: tuple[int, str]) -> list[dict[str, int | str]]:
    return [{"iid": iid, "title": title} for iid, title in pairs]
