"""Alerts from third-party senders: curl, apprise, and captured webhooks of monitoring systems."""

import json

import apprise
import pytest

from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.senders import JSON, captured, connect, curl, notifier
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
FIRST = {
    "01_firing_unicode_bearer.json": 1,
    "04_grouped_3_firing_common_labels.json": 3,
    "05_truncated_max_alerts_2_of_5.json": 2,
    "10_resolved_unicode.json": 1,
    "11_resolved_grouped_3.json": 3,
    "13_mixed_group_one_resolved_two_firing.json": 3,
    "17_prometheus_instance_down_2.json": 2,
    "18_prometheus_resolved_2.json": 2,
    "grafana.json": 2,
}
DISK = '{"title": "Disk full", "hosts": ["web-1"]}'


@pytest.mark.spec("I1", "I2")
def test_curl_sends_with_each_way_to_give_the_key(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    content = ("--header", f"Content-Type: {JSON}", "--data-binary", DISK)
    with_key = endpoint.url.replace("://", f"://:{endpoint.key}@")
    ways = [
        ("--header", f"Authorization: Bearer {endpoint.key}", endpoint.url),
        ("--oauth2-bearer", endpoint.key, endpoint.url),
        ("--user", f":{endpoint.key}", endpoint.url),
        (with_key,),
    ]
    for way in ways:
        printed = curl(*content, *way)
        assert printed.status == 200
        assert json.loads(printed.body) == [{"iid": 1, "title": "Disk full"}]
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.events, alert.hosts) == (4, "web-1")


@pytest.mark.spec("I2")
def test_curl_without_a_key_gets_an_explanation(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    printed = curl("--header", f"Content-Type: {JSON}", "--data-binary", DISK, endpoint.url)
    assert printed.status == 401
    assert 'WWW-Authenticate: Bearer realm="Gatebell", Basic realm="Gatebell"' in printed.head
    assert "authorization key" in json.loads(printed.body)["message"]


@pytest.mark.spec("I1")
def test_curl_without_a_content_type_gets_the_required_one(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    printed = curl("--oauth2-bearer", endpoint.key, "--data", DISK, endpoint.url)
    assert printed.status == 415
    assert "application/json" in json.loads(printed.body)["message"]


@pytest.mark.long
@pytest.mark.spec("I1", "I3")
def test_apprise_sends_and_the_team_sees_it(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    sender = notifier(endpoint)
    for _ in range(2):
        assert sender.notify(
            title="Disk full 磁盘", body="web-1 at 98%", notify_type=apprise.NotifyType.FAILURE
        )
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.title, alert.events) == ("Disk full 磁盘", 2)
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert "Disk full 磁盘" in page.text
    assert "web-1 at 98%" in page.text


@pytest.mark.long
@pytest.mark.spec("I2")
def test_apprise_notices_a_wrong_key(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    stranger = connect(gatebell)
    wrong = notifier(type(endpoint)(1, "", endpoint.url, stranger.key, gatebell.url))
    assert not wrong.notify(title="x", body="y")
    assert list_stored_alerts(gatebell, endpoint.project) == []


@pytest.mark.spec("I1", "I11", "I13", "J5")
@pytest.mark.parametrize("name", FIRST)
def test_each_item_of_a_captured_webhook_opens_an_alert(gatebell: LiveGatebell, name: str) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    answer = endpoint.post(captured(name))
    assert answer.status_code == 200
    items = json.loads(captured(name))["alerts"]
    assert len(items) == FIRST[name]
    assert [each["iid"] for each in answer.json()] == list(range(1, FIRST[name] + 1))
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert [alert.title for alert in alerts] == [each["title"] for each in answer.json()]
    assert [alert.status == "resolved" for alert in alerts] == [
        item["status"] == "resolved" for item in items
    ]
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.body == captured(name)


@pytest.mark.both_databases
@pytest.mark.spec("I8", "I16", "I17")
@pytest.mark.parametrize(
    ("firing", "recovery"),
    [
        ("01_firing_unicode_bearer.json", "10_resolved_unicode.json"),
        ("04_grouped_3_firing_common_labels.json", "11_resolved_grouped_3.json"),
        ("17_prometheus_instance_down_2.json", "18_prometheus_resolved_2.json"),
    ],
)
def test_a_captured_recovery_resolves_open_alerts(
    gatebell: LiveGatebell, firing: str, recovery: str
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    opened = endpoint.post(captured(firing)).json()
    assert endpoint.post(captured(firing)).json() == opened
    assert {alert.events for alert in list_stored_alerts(gatebell, endpoint.project)} == {2}
    assert endpoint.post(captured(recovery)).json() == opened
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert {alert.status for alert in alerts} == {"resolved"}
    assert all(alert.ended_at for alert in alerts)
    # A late copy opens no alert, but an alert that begins afterwards does.
    assert endpoint.post(captured(firing)).json() == opened
    later = json.loads(captured(firing))
    for each in later["alerts"]:
        each["startsAt"] = "2999-01-01T00:00:00Z"
    again = endpoint.post(json.dumps(later).encode()).json()
    count = len(opened)
    assert [each["iid"] for each in again] == list(range(count + 1, 2 * count + 1))


@pytest.mark.both_databases
@pytest.mark.spec("I3", "J5")
def test_an_alert_page_shows_the_complete_body_of_monit(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    printed = curl(
        "--user", f":{endpoint.key}", "--header", f"Content-Type: {JSON}",
        "--data-binary", captured("monit.json").decode(), endpoint.url,
    )  # fmt: skip
    assert json.loads(printed.body) == [{"iid": 1, "title": "New: Alert"}]
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    for text in ("MONIT_SERVICE", "testfile", "file doesn&#39;t exist", "Does not exist"):
        assert text in page.text


@pytest.mark.spec("I1")
def test_the_log_counts_alerts_that_the_sender_omitted(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(captured("05_truncated_max_alerts_2_of_5.json"))
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.truncated_alerts == 3
    assert "omitted 3 alerts" in delivery.parse_warnings[0]
    assert delivery.sender == "127.0.0.1"
