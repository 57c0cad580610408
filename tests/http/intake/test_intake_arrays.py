"""Arrays sent to an HTTP integration: each object is an alert."""

import json

import pytest

from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.senders import connect
from tests.support.database.stored import (
    get_newest_delivery,
    list_stored_alerts,
    list_stored_occurrences,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

#: Body that collectd's write_http plugin sends.
COLLECTD = [
    {
        "labels": {"host": "web-1", "plugin": "df", "alertname": "collectd_df"},
        "title": f"df is at {value} %",
        "severity": "high",
    }
    for value in (91, 97)
]


@pytest.mark.both_databases
def test_each_object_is_an_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    assert endpoint.post_json(COLLECTD) == [
        {"iid": 1, "title": "df is at 91 %"},
        {"iid": 2, "title": "df is at 97 %"},
    ]
    first, second = list_stored_alerts(gatebell, endpoint.project)
    assert (first.item_index, second.item_index) == (0, 1)
    assert first.delivery_id == second.delivery_id
    page = signed_in(gatebell, alice(gatebell)).get(
        f"{gatebell.url}/{endpoint.project}/-/alerts/2", timeout=20
    )
    assert "df is at 97 %" in page.text
    assert "labels.plugin" in page.text


@pytest.mark.both_databases
def test_repeated_objects_join_their_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json(COLLECTD)
    endpoint.post_json(COLLECTD[::-1])
    endpoint.post_json(COLLECTD[:1])
    endpoint.post_json(COLLECTD[0])
    assert [alert.events for alert in list_stored_alerts(gatebell, endpoint.project)] == [4, 2]


def test_items_that_are_not_objects_do_not_affect_other_items(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    assert endpoint.post_json(["x", COLLECTD[0], [], None]) == [
        {"iid": 1, "title": "df is at 91 %"}
    ]
    assert [
        (iid, item) for iid, item, _ in list_stored_occurrences(gatebell, endpoint.project)
    ] == [(1, 1)]
    assert get_newest_delivery(gatebell, endpoint.project).parse_warnings == [
        f"Item {number} was rejected: it is not an object" for number in (1, 3, 4)
    ]


def test_arrays_without_objects_and_arrays_for_alertmanager_are_rejected(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    for body, refused in (([], 0), ([1, "x"], 2)):
        answer = endpoint.post(json.dumps(body).encode())
        assert answer.status_code == 422
        assert len(answer.json().get("errors", [])) == refused
    metrics = connect(gatebell, endpoint.project, kind="prometheus")
    answer = metrics.post(json.dumps(COLLECTD).encode())
    assert answer.status_code == 400
    assert "The body is an array; a JSON object is expected." in answer.json()["message"]
    assert list_stored_alerts(gatebell, endpoint.project) == []
