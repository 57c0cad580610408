"""Arrays of alerts, which Prometheus, vmalert and rulers post as to an Alertmanager."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.accounts.people import now
from tests.support.alerts.monitoring import Metric, Prometheus, is_installed, wait_until
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import Endpoint, captured, connect
from tests.support.database.stored import get_newest_delivery, list_stored_alerts
from tests.support.service.live import LiveGatebell

PAIR = json.loads(captured("pairs/vmalert_v2_array.json"))


def at_api(endpoint: Endpoint, suffix: str = "/api/v2/alerts") -> Endpoint:
    """Return the endpoint for programs that use its URL as the URL of an Alertmanager."""
    return replace(endpoint, url=endpoint.url.removesuffix(".json") + suffix)


def alert(end_minutes: int, **labels: str) -> dict[str, Any]:
    (one,) = PAIR["firing"]
    end = now() + timedelta(minutes=end_minutes)
    return {**one, "labels": {**one["labels"], **labels}, "endsAt": end.isoformat()}


@pytest.mark.both_databases
@pytest.mark.parametrize("suffix", ["/api/v2/alerts", ".json/api/v2/alerts", ".json"])
def test_an_array_opens_groups_and_resolves(gatebell: LiveGatebell, suffix: str) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    sender = at_api(endpoint, suffix)
    first = sender.post_json([alert(4), alert(4, mountpoint="/var")])
    assert first == [{"iid": n, "title": "CPU high on web-1"} for n in (1, 2)]
    assert [each["iid"] for each in sender.post_json([alert(4)])] == [1]
    sender.post_json([alert(-1)])
    found = list_stored_alerts(gatebell, endpoint.project)
    assert [(each.status, each.events) for each in found] == [("resolved", 2), ("triggered", 1)]
    assert {each.severity for each in found} == {3}
    assert get_newest_delivery(gatebell, endpoint.project).parse_warnings == []


def test_the_page_of_an_alert_shows_its_item_of_the_array(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    at_api(endpoint).post_json([alert(4, mountpoint="/"), alert(4, mountpoint="/var")])
    shown = script_of(gatebell, endpoint.project, "alert_management_alerts").get("/2")
    assert shown["grouping"]["sentence"].startswith("Reports with the same labels")
    assert shown["details"]["labels.mountpoint"] == "/var"
    assert shown["description"] == "97 % for 10m"
    assert shown["generator_url"].startswith("http://vmalert:8880/")


def test_an_array_without_valid_items_is_rejected_with_a_reason(gatebell: LiveGatebell) -> None:
    endpoint = at_api(connect(gatebell, kind="prometheus"))
    for body, status, words in (
        ([], 400, "an array"),
        ([{"labels": {}, "endsAt": ""}, 7], 422, "None of the items"),
        # Only items of Alertmanager's webhook need a start.
        ([{"labels": {"alertname": "X"}, "generatorURL": "http://p/"}], 200, "X"),
    ):
        answer = endpoint.post(json.dumps(body).encode())
        assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_the_path_of_alertmanager_needs_the_key(gatebell: LiveGatebell) -> None:
    endpoint = at_api(connect(gatebell, kind="prometheus"))
    assert endpoint.post(b"[]", Authorization="Bearer wrong").status_code == 401


@pytest.mark.parametrize("event", ["firing", "recovery"])
def test_an_array_is_recognized(gatebell: LiveGatebell, event: str) -> None:
    endpoint = connect(gatebell)
    found = script_of(gatebell, endpoint.project, "alert_management_integrations").post(
        "/recognize", sample=PAIR[event]
    )
    assert found.status_code in {200, 201}, found.text
    assert (found.json()["tool"], found.json()["type"]) == ("Prometheus or vmalert", "prometheus")


def test_an_http_endpoint_warns_of_an_array(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json(PAIR["firing"])
    (*_, warning) = get_newest_delivery(gatebell, endpoint.project).parse_warnings
    assert "alerts from Prometheus or vmalert" in warning


@pytest.fixture
def metric() -> Iterator[Metric]:
    made = Metric()
    yield made
    made.close()


def is_stored(gatebell: LiveGatebell, endpoint: Endpoint, status: str) -> bool:
    return [each.status for each in list_stored_alerts(gatebell, endpoint.project)] == [status]


@pytest.mark.long
@pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring could not fetch it")
def test_prometheus_sends_to_the_url_as_to_an_alertmanager(
    gatebell: LiveGatebell, metric: Metric, tmp_path: Path
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    place = urlsplit(endpoint.url)
    prometheus = Prometheus(
        tmp_path / "prometheus",
        metric,
        {
            "path_prefix": place.path.removesuffix(".json"),
            "authorization": {"credentials": endpoint.key},
            "static_configs": [{"targets": [place.netloc]}],
        },
    )
    prometheus.start()
    try:
        for value, status in ((1, "triggered"), (0, "resolved")):
            metric.value = value
            has_status = partial(is_stored, gatebell, endpoint, status)
            wait_until(has_status, f"the alert is {status}")
    finally:
        prometheus.stop()
    (stored,) = list_stored_alerts(gatebell, endpoint.project)
    assert stored.title == "Disk of db-1 is full"
