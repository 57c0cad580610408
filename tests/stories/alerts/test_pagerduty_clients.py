"""PagerDuty's own client with another host."""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pagerduty
import pytest
import requests

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.databases import ON_POSTGRES, ON_SQLITE
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.certificates import make_certificate
from tests.support.service.live import LiveGatebell
from tests.support.service.tls_front import tls_front

EVENT = {
    "routing_key": "0123456789abcdef0123456789abcdef",
    "event_action": "trigger",
    "dedup_key": "disk-web-1",
    "payload": {"summary": "Disk full", "source": "web-1", "severity": "error"},
}


@pytest.fixture
def endpoint(gatebell: LiveGatebell) -> Endpoint:
    return connect(gatebell)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def client(
    gatebell: LiveGatebell, endpoint: Endpoint, certificate: Path
) -> Iterator[pagerduty.EventsApiV2Client]:
    """The client with the integration's key, at another host; it requires https."""
    trust = ssl.create_default_context(cafile=certificate)
    with (
        tls_front(gatebell.port, certificate) as url,
        pagerduty.EventsApiV2Client(
            endpoint.key, base_url=url, verify=trust, trust_env=False
        ) as opened,
    ):
        yield opened


def enqueue(
    gatebell: LiveGatebell, body: Any, *, path: str = "/v2/enqueue", **headers: str
) -> requests.Response:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    with requests.Session() as session:
        session.trust_env = False
        return session.post(
            f"{gatebell.url}{path}",
            data=sent,
            headers={"Content-Type": "application/json", **headers},
            timeout=60,
        )


@pytest.mark.long
def test_an_alert_is_triggered_acknowledged_and_resolved(
    gatebell: LiveGatebell, endpoint: Endpoint, client: pagerduty.EventsApiV2Client
) -> None:
    key = client.trigger(
        "Disk full on web-1",
        "web-1",
        severity="error",
        payload={"component": "disk", "timestamp": "2026-03-01T12:00:00Z"},
        custom_details={"free": "2 %", "platform_environment_name": "production"},
        links=[{"href": "https://wiki.example/disk", "text": "Runbook"}],
    )
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.title, alert.status, alert.service) == ("Disk full on web-1", "triggered", "disk")
    assert (alert.severity, alert.hosts, alert.environment) == (2, "web-1", "production")
    assert client.trigger("Disk full on web-1", "web-1", key, severity="critical") == key
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.events, alert.severity) == (2, 0)
    assert client.acknowledge(key) == key
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.status == "acknowledged"
    assert client.resolve(key) == key
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.status == "resolved"
    client.trigger("Disk full on web-1", "web-1", key)
    assert [each.status for each in list_stored_alerts(gatebell, endpoint.project)] == [
        "resolved",
        "triggered",
    ]


def test_events_without_a_key_of_the_same_content_are_one_alert(
    gatebell: LiveGatebell, endpoint: Endpoint, client: pagerduty.EventsApiV2Client
) -> None:
    keys = {client.trigger("Disk full", "web-1") for _ in range(2)}
    keys.add(client.trigger("Disk full", "web-2"))
    assert len(keys) == 2
    assert [each.events for each in list_stored_alerts(gatebell, endpoint.project)] == [2, 1]


def test_events_without_an_open_alert_are_dropped_and_logged(
    gatebell: LiveGatebell, endpoint: Endpoint, client: pagerduty.EventsApiV2Client
) -> None:
    assert client.acknowledge("nothing") == "nothing"
    assert client.resolve("nothing") == "nothing"
    assert list_stored_alerts(gatebell, endpoint.project) == []
    found = list_stored_deliveries(gatebell, endpoint.project)
    assert [each.status_code for each in found] == [200, 200]
    assert all("No open alert has this dedup_key" in each.parse_warnings[0] for each in found)


def test_change_events_are_logged_and_open_no_alert(
    gatebell: LiveGatebell, endpoint: Endpoint, client: pagerduty.EventsApiV2Client
) -> None:
    client.send_change_event({"summary": "Deployed 1.2", "source": "ci"})
    assert list_stored_alerts(gatebell, endpoint.project) == []
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert "Change events do not open alerts." in delivery.parse_warnings[0]


def test_no_stored_body_holds_the_key(
    gatebell: LiveGatebell, endpoint: Endpoint, client: pagerduty.EventsApiV2Client
) -> None:
    client.trigger("Disk full", "web-1")
    escaped = endpoint.key.replace("g", "\\u0067").encode()
    name = b'"routing\\u005fkey"'
    for sent in (
        b'{"routing_key": "%s", "event_action": "nonsense"}' % escaped,
        b'{%s: "%s", "event_action": "resolve", "dedup_key": "x"}' % (name, endpoint.key.encode()),
    ):
        enqueue(gatebell, sent)
    for delivery in list_stored_deliveries(gatebell, endpoint.project):
        body = delivery.body or b""
        assert b"[hidden]" in body
        assert endpoint.key.encode() not in body
        assert escaped not in body


def test_the_url_of_an_integration_accepts_events(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    answer = endpoint.send(**EVENT)
    assert (answer.status_code, answer.json()) == (
        202,
        {"status": "success", "message": "Event processed", "dedup_key": "disk-web-1"},
    )
    for action, status in (("acknowledge", "acknowledged"), ("resolve", "resolved")):
        sent = {**EVENT, "event_action": action}
        assert endpoint.send(**sent).status_code == 202
        (alert,) = list_stored_alerts(gatebell, endpoint.project)
        assert alert.status == status
    bodies = [each.body or b"" for each in list_stored_deliveries(gatebell, endpoint.project)]
    assert not any(EVENT["routing_key"].encode() in body for body in bodies)  # type: ignore[attr-defined]
    refused = endpoint.send(**{**EVENT, "event_action": "shout"})
    assert refused.status_code == 400
    assert "must be one of trigger, acknowledge, resolve" in refused.json()["errors"][0]


@ON_POSTGRES
def test_a_malformed_event_is_rejected_like_pagerduty_does(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    good = {**EVENT, "routing_key": endpoint.key}
    about = good["payload"]
    assert isinstance(about, dict)
    wrong: list[tuple[Any, str]] = [
        ({**good, "event_action": "shout"}, "event_action"),
        ({**good, "event_action": None}, "event_action"),
        ({**good, "dedup_key": "x" * 256}, "dedup_key"),
        ({**good, "dedup_key": 7}, "dedup_key"),
        ({**good, "event_action": "resolve", "dedup_key": ""}, "dedup_key"),
        ({**good, "payload": None}, "payload"),
        ({**good, "payload": {**about, "summary": " "}}, "payload.summary"),
        ({**good, "payload": {**about, "source": None}}, "payload.source"),
        ({**good, "payload": {**about, "severity": "bad"}}, "payload.severity"),
        ({"routing_key": endpoint.key}, "event_action"),
        ({**good, "routing_key": "x" * 32}, "routing_key"),
        ({**good, "routing_key": endpoint.key.swapcase()}, "routing_key"),
        ({**good, "routing_key": 7}, "routing_key"),
        ([], "array"),
        (b"", "empty"),
        (b"{", "JSON"),
        (b"\xff", "UTF-8"),
        (b"[" * 100_000, "nested"),
    ]
    for body, named in wrong:
        answer = enqueue(gatebell, body)
        said = answer.json()
        assert answer.status_code == 400, body
        assert (said["status"], said["message"]) == ("invalid event", "Event object is invalid")
        assert named in said["errors"][0], said
    assert enqueue(gatebell, b" " * 600_000).status_code == 413
    assert list_stored_alerts(gatebell, endpoint.project) == []


@ON_SQLITE
def test_a_disabled_integration_rejects_events(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, active=False)
    answer = enqueue(gatebell, {**EVENT, "routing_key": endpoint.key})
    assert (answer.status_code, answer.json()["errors"]) == (
        400,
        ["This integration is turned off."],
    )


@ON_SQLITE
def test_keys_of_other_types_and_expired_keys_are_unknown(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    assert enqueue(gatebell, {**EVENT, "routing_key": endpoint.key}).status_code == 400
    assert list_stored_deliveries(gatebell, endpoint.project) == []


@ON_SQLITE
def test_unusual_texts_are_accepted(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    body = (
        b'{"routing_key": "%s", "event_action": "trigger", "dedup_key": "a\\ud800\\u0000",'
        b' "payload": {"summary": "a\\u0000\\ud800", "source": "\\u202e", "severity": "INFO",'
        b' "custom_details": [1e400]}}' % endpoint.key.encode()
    )
    answer = enqueue(gatebell, body)
    assert answer.status_code == 202
    assert answer.json()["dedup_key"] == "a\ufffd\ufffd"


@ON_SQLITE
def test_the_activity_shows_that_the_sender_acknowledged_the_alert(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    endpoint.send(**EVENT)
    endpoint.send(**{**EVENT, "event_action": "acknowledge"})
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert "<strong>The sender</strong> acknowledged it" in page.text
    assert "Events with the same dedup_key are grouped into one alert." in page.text
    call = api_caller(gatebell, alice(gatebell), f"/projects/{quote(endpoint.project, safe='')}")
    (entry, *_) = call.done("GET", "/alert_management_alerts/1/activity")
    assert (entry["kind"], entry["author"]) == ("status", None)
