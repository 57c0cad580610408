"""Each item of a delivery stores an occurrence with its alert and its action."""

import pytest

from domain.alerts.storing.lifecycle import Action
from tests.support.alerts.senders import connect, item, resolved, webhook
from tests.support.database.stored import (
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_occurrences,
)
from tests.support.service.live import LiveGatebell

#: Start of an alert after the recovery that `resolved` reports.
LATER = {"startsAt": "2026-11-21T09:00:00Z"}


@pytest.mark.spec("I16", "I17")
def test_each_report_stores_an_occurrence(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    copy, new = item("a"), item("a", **LATER)
    for body in (item("a"), copy, resolved("a"), resolved("a"), copy, new, resolved("b")):
        assert endpoint.post(webhook(body)).status_code == 200
    assert list_stored_occurrences(gatebell, endpoint.project) == [
        (1, 0, Action.OPENED),
        (1, 0, Action.JOINED),
        (1, 0, Action.RESOLVED),
        (1, 0, Action.UNCHANGED),
        (1, 0, Action.LATE),
        (2, 0, Action.OPENED),
        (3, 0, Action.STORED_AS_RESOLVED),
    ]


@pytest.mark.spec("I11", "I16", "I17")
def test_each_item_of_a_webhook_stores_an_occurrence(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a"), resolved("z")))
    again = item("b")
    endpoint.post(webhook(item("b"), "no item", resolved("a"), again, resolved("z"), item("a")))
    endpoint.post(webhook(item("a", **LATER), "no item"))
    assert list_stored_occurrences(gatebell, endpoint.project) == [
        (1, 0, Action.OPENED),
        (2, 1, Action.STORED_AS_RESOLVED),
        (3, 0, Action.OPENED),
        (1, 2, Action.RESOLVED),
        (3, 3, Action.JOINED),
        (2, 4, Action.UNCHANGED),
        (1, 5, Action.LATE),
        (4, 0, Action.OPENED),
    ]


@pytest.mark.spec("I16", "I17")
def test_one_webhook_joins_resolves_and_reopens_the_same_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a"), item("b")))
    next_one = item("a", **LATER)
    items = (item("a"), item("a"), item("c"), resolved("a"), next_one, item("b"), resolved("c"))
    assert [each["iid"] for each in endpoint.post(webhook(*items)).json()] == [1, 3, 4, 2]
    old, counted, brief, new = list_stored_alerts(gatebell, endpoint.project)
    assert (old.status, old.events) == ("resolved", 3)
    assert (counted.status, counted.events, counted.ended_at) == ("triggered", 2, None)
    assert (brief.status, brief.events) == ("resolved", 1)
    assert old.ended_at == brief.ended_at is not None
    assert (new.status, new.events, new.title) == ("triggered", 1, "a")
    assert old.last_event_at == counted.last_event_at == new.created_at > old.created_at
    log = list_stored_deliveries(gatebell, endpoint.project)[-1]
    assert (log.opened, log.joined, log.resolved) == (2, 3, 2)


@pytest.mark.spec("I17")
def test_late_recoveries_find_the_last_resolved_alert_of_each_series(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    names = [f"s{number}" for number in range(40)]
    for times in ({}, LATER):
        ended = {"endsAt": "2026-11-21T10:00:00Z"} if times else {}
        endpoint.post(webhook(*(item(name, **times) for name in names)))
        endpoint.post(webhook(*(resolved(name) | times | ended for name in names)))
    answer = endpoint.post(webhook(*map(resolved, reversed(names)), resolved("new")))
    assert [each["iid"] for each in answer.json()] == [*range(80, 40, -1), 81]
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 81


def test_a_rejected_delivery_stores_no_occurrence(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    assert endpoint.post(webhook("no item")).status_code == 422
    assert list_stored_occurrences(gatebell, endpoint.project) == []
    assert len(list_stored_deliveries(gatebell, endpoint.project)) == 1
