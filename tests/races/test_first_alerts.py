"""Tests that concurrent alerts cause no loss, duplicate or server error."""

from functools import partial

import pytest
import requests

from tests.support.alerts.senders import Endpoint, connect, item, resolved, webhook
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell

CROWD = 16


def at_once(endpoint: Endpoint, bodies: list[bytes]) -> list[requests.Response]:
    """Send all bodies simultaneously, each from a separate sender."""
    return run_simultaneously([partial(endpoint.post, body) for body in bodies])


@pytest.mark.spec("I8", "I16")
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("http", b'{"title": "Disk full"}'),
        ("prometheus", webhook(item("Disk full"))),
        ("prometheus", webhook(item("Disk full"), "no item")),
    ],
)
def test_identical_first_alerts_are_one_alert_with_an_event_each(
    gatebell: LiveGatebell, kind: str, body: bytes
) -> None:
    endpoint = connect(gatebell, kind=kind)
    answers = at_once(endpoint, [body] * CROWD)
    assert {answer.status_code for answer in answers} == {200}
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.title, alert.status, alert.events) == ("Disk full", "triggered", CROWD)
    assert {answer.text for answer in answers} == {f'[{{"iid":{alert.iid},"title":"Disk full"}}]'}
    log = list_stored_deliveries(gatebell, endpoint.project)
    assert len(log) == CROWD
    assert sum(delivery.opened for delivery in log) == 1
    assert sum(delivery.joined for delivery in log) == CROWD - 1


@pytest.mark.spec("I1")
def test_different_alerts_get_different_numbers(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    answers = at_once(endpoint, [b'{"title": "Alert %d"}' % number for number in range(CROWD)])
    assert {answer.status_code for answer in answers} == {200}
    given = {item["title"]: item["iid"] for answer in answers for item in answer.json()}
    assert sorted(given.values()) == list(range(1, CROWD + 1))
    assert given == {
        alert.title: alert.iid for alert in list_stored_alerts(gatebell, endpoint.project)
    }


@pytest.mark.spec("I1")
def test_concurrent_batches_get_different_numbers(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    bodies = [webhook(*(item(f"{batch}-{one}") for one in range(10))) for batch in range(8)]
    answers = at_once(endpoint, bodies)
    assert {answer.status_code for answer in answers} == {200}
    assert [alert.iid for alert in list_stored_alerts(gatebell, endpoint.project)] == list(
        range(1, 81)
    )
    for batch, answer in enumerate(answers):
        iids = [each["iid"] for each in answer.json()]
        assert iids == list(range(iids[0], iids[0] + 10))
        assert [each["title"] for each in answer.json()] == [f"{batch}-{one}" for one in range(10)]


@pytest.mark.long
@pytest.mark.spec("I16")
def test_equal_items_in_opposite_order_do_not_deadlock(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    names = [f"a{number}" for number in range(20)]
    there, back = ([item(name) for name in order] for order in (names, names[::-1]))
    for _ in range(8):
        answers = at_once(endpoint, [webhook(*there), webhook(*back)] * 4)
        assert {answer.status_code for answer in answers} == {200}
    assert {alert.events for alert in list_stored_alerts(gatebell, endpoint.project)} == {64}


@pytest.mark.long
@pytest.mark.spec("I16", "I17")
def test_concurrent_firing_and_recovery_leave_at_most_one_open_alert(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for _ in range(4):
        bodies = [webhook(item("a")), webhook(resolved("a")), webhook(item("a"), "no item")] * 4
        answers = at_once(endpoint, bodies)
        assert {answer.status_code for answer in answers} == {200}
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert sum(alert.status != "resolved" for alert in alerts) <= 1
    assert len({alert.iid for alert in alerts}) == len(alerts)
