"""Tests of `/api/v4/projects/:id/webhooks`, with deliveries by the real worker."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import pytest
import requests

from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import make_project, make_user, now
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Received, Receiver, running_receiver

pytestmark = pytest.mark.one_database("postgres")

ELSEWHERE = "https://hooks.invalid/in?key=of-the-bot"


@dataclass(frozen=True)
class Shop:
    """A project with a client for its webhooks, and a sender of alerts."""

    path: str
    call: ApiCaller
    sender: Endpoint


@pytest.fixture
def shop(gatebell: LiveGatebell) -> Shop:
    alice = make_user(gatebell)
    path = make_project(gatebell, alice)
    at = f"/projects/{path.replace('/', '%2F')}/webhooks"
    return Shop(path, api_caller(gatebell, alice, at), connect(gatebell, path))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def refusing(status: int) -> Callable[[Received], tuple[int, Mapping[str, str]]]:
    return lambda _request: (status, {})


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_an_alert_is_sent_by_the_worker_and_logged(
    gatebell: LiveGatebell, shop: Shop, receiver: Receiver
) -> None:
    answer = shop.call("POST", json={"url": receiver.url, "events": ["alert.opened"]})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    made = answer.json()
    assert made["secret"].startswith("whsec_")
    shop.sender.accepted(title="Disk full", severity="high", service="db")
    (message,) = receiver.wait_for(1, "alert.opened")
    body = message.verified_by(made["secret"])
    alert = body["data"]["alert"]
    assert (alert["title"], alert["severity"], alert["service"]) == ("Disk full", "high", "db")
    assert alert["web_url"] == f"{gatebell.url}/{shop.path}/-/alerts/1"
    assert body["data"]["project"]["path_with_namespace"] == shop.path
    one = f"/{made['id']}"
    (listed,) = wait_for_deliveries(shop, one, "delivered")
    shown = shop.call.done("GET", f"{one}/deliveries/{listed['id']}")
    assert shown["message_id"] == message.message_id == shown["headers"]["webhook-id"]
    assert shown["body"].encode() == message.body
    assert "webhook-signature" not in shown["headers"]
    assert (shown["status_code"], shown["tries"], shown["error"]) == (204, 1, None)


def wait_for_deliveries(shop: Shop, one: str, state: str) -> list[dict[str, Any]]:
    """Wait until the worker has tried a delivery that has this state."""
    deadline = monotonic() + 60
    while True:
        found: list[dict[str, Any]] = shop.call.done("GET", f"{one}/deliveries?state={state}")
        if found and found[0]["tries"]:
            return found
        assert monotonic() < deadline, f"no delivery is {state}"
        sleep(0.05)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J2")
def test_an_incident_is_sent_when_it_is_opened_and_resolved(
    gatebell: LiveGatebell, shop: Shop, receiver: Receiver
) -> None:
    given = {"url": receiver.url, "events": ["incident.opened", "incident.resolved"]}
    made = shop.call.done("POST", status=201, json=given)
    shop.sender.accepted(title="Disk full", severity="high")
    incidents = ApiCaller(
        url=shop.call.url.replace("/webhooks", "/incidents"), token=shop.call.token
    )
    opened = incidents.done("POST", status=201, json={"title": "Shop is down", "alerts": [1]})
    one = f"/{opened['iid']}"
    for status in ("acknowledged", "resolved"):
        incidents.done("PUT", one, json={"status": status})
    first, last = receiver.wait_for(2, "incident.opened", "incident.resolved")
    for message, kind in ((first, "incident.opened"), (last, "incident.resolved")):
        body = message.verified_by(made["secret"])
        shown = body["data"]["incident"]
        assert (body["type"], shown["title"], shown["alerts"]) == (kind, "Shop is down", [1])
        assert shown["web_url"] == f"{gatebell.url}/{shop.path}/-/incidents/{opened['iid']}"
    assert last.event["data"]["incident"]["status"] == "resolved"
    # Only the selected events are sent, and each is sent once.
    assert [each.type for each in receiver.received] == ["incident.opened", "incident.resolved"]


@pytest.mark.long
def test_a_failed_delivery_is_sent_again_with_its_id(shop: Shop, receiver: Receiver) -> None:
    seen: list[Received] = []

    def answer(request: Received) -> tuple[int, Mapping[str, str]]:
        seen.append(request)
        return (500 if len(seen) == 1 else 200), {}

    receiver.answer = answer
    made = shop.call.done("POST", status=201, json={"url": receiver.url, "events": "*"})
    one = f"/{made['id']}"
    shop.sender.accepted(title="Disk full")
    while (
        not (waiting := shop.call.done("GET", f"{one}/deliveries?state=waiting"))
        or not waiting[0]["error"]
    ):
        pass
    assert waiting[0]["error"] == "the server returned 500 Internal Server Error"
    assert waiting[0]["next_try_at"] is not None
    assert shop.call.done("GET", one)["state"] == "retrying"
    # The delivery is sent immediately, before its next try is due.
    again = f"{one}/deliveries/{waiting[0]['id']}/send_again"
    shop.call.done("POST", again, status=202)
    receiver.wait_for(1, "alert.opened")
    assert len({each.message_id for each in seen}) == 1
    assert {each.verified_by(made["secret"])["type"] for each in seen} == {"alert.opened"}


@pytest.mark.long
def test_both_secrets_are_valid_during_a_rotation(shop: Shop, receiver: Receiver) -> None:
    made = shop.call.done("POST", status=201, json={"url": receiver.url, "events": "*"})
    one = f"/{made['id']}"
    rotated = shop.call.done("POST", f"{one}/rotate_secret", status=201)
    assert rotated["secret"] != made["secret"]
    assert rotated["previous_secret_expires_at"] is not None
    tested = shop.call.done("POST", f"{one}/test")
    assert (tested["delivered"], tested["status"]) == (True, 204)
    (message,) = receiver.of("webhook.tested")
    for secret in (made["secret"], rotated["secret"]):
        assert message.verified_by(secret)
    logged = shop.call.done("GET", f"{one}/deliveries/{tested['delivery_id']}")
    assert (logged["event"], logged["state"]) == ("webhook.tested", "delivered")
    ended = {"previous_secret_expires_at": now().isoformat()}
    newest = shop.call.done("POST", f"{one}/rotate_secret", status=201, json=ended)
    shop.call.done("POST", f"{one}/test")
    assert " " not in receiver.of("webhook.tested")[-1].headers["webhook-signature"]
    assert receiver.of("webhook.tested")[-1].verified_by(newest["secret"])
    late = {"previous_secret_expires_at": (now() + timedelta(days=91)).isoformat()}
    assert "at most 90" in shop.call.refused("POST", f"{one}/rotate_secret", json=late)


@pytest.mark.long
def test_a_webhook_is_changed_paused_resumed_and_deleted(
    gatebell: LiveGatebell, shop: Shop
) -> None:
    made = shop.call.done("POST", status=201, json={"url": ELSEWHERE, "events": "alert.opened"})
    one = f"/{made['id']}"
    given = {"events": ["incident.opened", "alert.resolved"], "labels": {"team": "db"}}
    changed = shop.call.done("PUT", one, json=given)
    assert changed["events"] == ["alert.resolved", "incident.opened"]
    assert changed["labels"] == ['team="db"']
    assert changed["url"] == ELSEWHERE
    paused = shop.call.done("PUT", one, json={"active": False})
    assert (paused["active"], paused["state"], paused["pause_reason"]) == (False, "paused", "user")
    resumed = shop.call.done("PUT", one, json={"active": True, "severities": ["critical"]})
    assert (resumed["active"], resumed["severities"]) == (True, ["critical"])
    (listed,) = shop.call.done("GET")
    assert listed == resumed
    assert "secret" not in listed
    shop.call.done("DELETE", one, status=204)
    shop.call.refused("GET", one, status=404)
    new = {"url": ELSEWHERE, "events": "alert.opened", "active": False}
    unused = shop.call.done("POST", status=201, json=new)
    assert (unused["active"], unused["pause_reason"]) == (False, "user")
    assert shop.call.done("GET", f"/{unused['id']}")["state"] == "paused"
    kinds = [each.kind for each in list_events_with_subject(gatebell, "https://hooks.invalid/in")]
    # The secret in the query of the URL is not in the audit log.
    assert set(kinds) == {"webhook.created", "webhook.changed", "webhook.removed"}


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "url"),
    ({"url": "https://a.example", "events": []}, "Choose at least one event"),
    ({"url": "ftp://a.example", "events": "*"}, "must begin with https://"),
    ({"url": "https://me:pw@a.example", "events": "*"}, "username or password"),
    ({"url": "https://a.example", "events": "alert.vanished"}, "is not one of"),
    ({"url": "https://a.example", "events": "*", "labels": "x=~("}, "Character 4"),
    ({"url": "https://a.example", "events": "*", "severities": ["awful"]}, "awful"),
    ({"url": "https://a.example", "events": "*", "active": "later"}, "active"),
)


@pytest.mark.long
def test_an_invalid_webhook_is_rejected_with_the_reason(shop: Shop) -> None:
    for given, words in WRONG:
        assert words in shop.call.refused("POST", json=given), given


# tests/web/outgoing/test_addresses.py tests all addresses that are not public.
@pytest.mark.long
def test_a_webhook_cannot_have_a_private_address(shop: Shop) -> None:
    for url in ("http://169.254.169.254/latest/meta-data/", "http://0x0a.1.2.3/"):
        said = shop.call.refused("POST", json={"url": url, "events": "*"}, status=400)
        assert "OUTGOING_PRIVATE_ADDRESSES" in said


def test_a_delivery_of_another_webhook_is_not_found(shop: Shop, receiver: Receiver) -> None:
    one, other = (
        shop.call.done("POST", status=201, json={"url": receiver.url, "events": "*"})["id"]
        for _ in range(2)
    )
    tested = shop.call.done("POST", f"/{one}/test")
    at = f"/{other}/deliveries/{tested['delivery_id']}"
    assert "Delivery not found" in shop.call.refused("GET", at, status=404)
    shop.call.refused("POST", f"{at}/send_again", status=404)
    assert "state" in shop.call.refused("GET", f"/{one}/deliveries?state=lost")


@pytest.mark.long
def test_the_backlog_is_part_of_the_metrics(gatebell: LiveGatebell, shop: Shop) -> None:
    made = shop.call.done("POST", status=201, json={"url": ELSEWHERE, "events": "*"})
    shop.sender.accepted(title="Disk full")
    wait_for_deliveries(shop, f"/{made['id']}", "waiting")
    metrics = requests.get(f"{gatebell.url}/metrics", timeout=30).text
    values = dict(
        line.rsplit(" ", 1) for line in metrics.splitlines() if line.startswith("gatebell_webhook")
    )
    assert float(values["gatebell_webhook_backlog_deliveries"]) >= 1
    assert float(values["gatebell_webhook_backlog_age_seconds"]) > 0
    assert float(values["gatebell_webhook_failing_endpoints"]) >= 1
    assert float(values["gatebell_webhook_paused_endpoints"]) >= 0
    assert "of-the-bot" not in metrics
    shop.call.done("DELETE", f"/{made['id']}", status=204)
