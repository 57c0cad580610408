"""Tests of deliveries in the API: lists, details with bodies, resending and replaying."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from models import Alert, Delivery, Integration, Project
from tests.support.accounts.people import alice, database_of, unique
from tests.support.alerts.integration_pages import opened
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, captured, connect
from tests.support.database.stored import change, list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


def script(gatebell: LiveGatebell, endpoint: Endpoint) -> Script:
    at = f"alert_management_integrations/{endpoint.id}/deliveries"
    return script_of(gatebell, endpoint.project, at)


@pytest.mark.both_databases
@pytest.mark.spec("J5")
def test_a_delivery_is_shown_with_its_body_and_results(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    body = captured("13_mixed_group_one_resolved_two_firing.json")
    assert endpoint.post(body).status_code == 200
    worker = script(gatebell, endpoint)
    (listed,) = worker.get()

    shown = worker.get(f"/{listed['id']}")

    assert listed.items() <= shown.items()
    assert "body" not in listed
    assert (listed["outcome"], listed["status_code"], listed["size"]) == (
        "accepted",
        200,
        len(body),
    )
    assert json.loads(shown["body"]) == json.loads(body)
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert [(each["iid"], each["item"], each["action"]) for each in shown["alerts"]] == [
        (1, 1, "stored as resolved"),
        (2, 2, "opened"),
        (3, 3, "opened"),
    ]
    assert [each["title"] for each in shown["alerts"]] == [alert.title for alert in alerts]
    assert shown["alerts"][0]["web_url"] == f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    exact = worker.send("GET", f"/{listed['id']}/body")
    assert exact.content == body
    assert exact.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.both_databases
def test_the_list_of_deliveries_has_the_filters_of_the_page(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.send()
    endpoint.post(b"[")
    endpoint.send(start_time="whenever")
    integration = script_of(gatebell, endpoint.project, "alert_management_integrations")
    integration.post(f"/{endpoint.id}/test")
    worker = script(gatebell, endpoint)
    everything = [each["id"] for each in worker.get()]
    assert len(everything) == 4

    def found(**query: str) -> list[int]:
        return [everything.index(each["id"]) for each in worker.get(params=query)]

    assert found(show="tests") == [0]
    assert found(show="warnings") == [1]
    assert found(show="refused") == found(status="400") == [2]
    assert found(show="accepted", status="200") == [0, 1, 3]
    (refused,) = worker.get(params={"show": "refused"})
    assert "not JSON" in refused["reason"]
    assert worker.get(f"/{refused['id']}")["alerts"] == []
    page = worker.send("GET", params={"per_page": 3})
    assert f"cursor={everything[2]}" in page.links["next"]["url"]
    assert found(cursor=str(everything[2])) == [3]
    for query in ("show=remarks", "status=x", "status=99", "cursor=x", "page=2", "kind=a"):
        answer = worker.send("GET", f"?{query}")
        assert answer.status_code == 400, query


@pytest.mark.both_databases
def test_a_delivery_is_sent_again_as_a_new_delivery(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="a", fingerprint="x")
    endpoint.post(b"[")
    worker = script(gatebell, endpoint)
    refused, first = (each["id"] for each in worker.get())

    again = worker.send("POST", f"/{first}/resend")

    assert again.status_code == 201
    shown = again.json()
    assert (shown["outcome"], shown["grouped"]) == ("accepted", 1)
    assert shown["sender"] == alice(gatebell).username
    assert f"Sent again from delivery {first}." in shown["parse_warnings"][0]
    assert [(each["iid"], each["action"]) for each in shown["alerts"]] == [(1, "joined")]
    assert list_stored_alerts(gatebell, endpoint.project)[0].events == 2
    still = worker.send("POST", f"/{refused}/resend")
    assert (still.status_code, still.json()["outcome"]) == (201, "refused")
    assert len(list_stored_deliveries(gatebell, endpoint.project)) == 4
    at = script_of(gatebell, endpoint.project, "alert_management_integrations")
    at.put(f"/{endpoint.id}", active=False)
    off = worker.send("POST", f"/{first}/resend")
    assert off.status_code == 403
    assert len(list_stored_deliveries(gatebell, endpoint.project)) == 4


def test_a_delivery_without_a_body_cannot_be_sent_again(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post(b"{}", Authorization="Bearer wrong")
    worker = script(gatebell, endpoint)
    (listed,) = worker.get()
    assert listed["status_code"] == 401
    assert worker.get(f"/{listed['id']}")["body"] is None
    for method, path in (("GET", "body"), ("POST", "resend")):
        answer = worker.send(method, f"/{listed['id']}/{path}")
        assert answer.status_code == 404
        assert "was not stored" in answer.json()["message"]
    assert worker.send("GET", "/0").status_code == 404


@pytest.mark.both_databases
def test_requests_with_the_same_idempotency_key_are_executed_once(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="a", fingerprint="x")
    at = script_of(gatebell, endpoint.project, "alert_management_integrations")
    first = at.get(f"/{endpoint.id}/deliveries")[0]["id"]
    for path in ("test", f"deliveries/{first}/resend"):
        before = len(list_stored_deliveries(gatebell, endpoint.project))
        headers = {"Idempotency-Key": unique("key")}
        answers = [
            at.send("POST", f"/{endpoint.id}/{path}", headers=headers, timeout=20) for _ in range(2)
        ]
        assert [each.status_code for each in answers] in ([200, 200], [201, 201])
        assert answers[0].json() == answers[1].json()
        assert answers[1].headers["Idempotency-Replayed"] == "true"
        assert len(list_stored_deliveries(gatebell, endpoint.project)) == before + 1


def reject_deliveries(gatebell: LiveGatebell, endpoint: Endpoint, *bodies: dict[str, str]) -> None:
    """Create deliveries that are rejected because the integration is off, and turn it on again."""
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, mine.values(active=False))
    for body in bodies:
        assert endpoint.send(**body).status_code == 403
    change(gatebell, mine.values(active=True))


SINCE = "2020-01-01T00:00:00Z"


@pytest.mark.both_databases
def test_rejected_deliveries_of_a_period_are_replayed_once_and_in_order(
    gatebell: LiveGatebell,
) -> None:
    endpoint, over = connect(gatebell), "2026-11-21T08:00:00Z"
    disk = {"title": "Disk", "fingerprint": "disk", "start_time": "2026-11-21T07:00:00Z"}
    reject_deliveries(gatebell, endpoint, disk, {**disk, "end_time": over}, {"title": "CPU"})
    endpoint.post(b"[")
    worker = script(gatebell, endpoint)
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda _: worker.post("/replay", since=SINCE).json(), range(4)))
    replayed = [number for answer in answers for number in answer["replayed"]]
    assert len(replayed) == len(set(replayed)) == 3
    assert [answer["next_after"] for answer in answers] == [None] * 4
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert sorted((alert.title, alert.status, alert.events) for alert in alerts) == [
        ("CPU", "triggered", 1),
        ("Disk", "resolved", 1),
    ]
    first, *_, broken = list_stored_deliveries(gatebell, endpoint.project)[:4]
    assert first.replayed_as in replayed
    assert (broken.status_code, broken.replayed_as) == (400, None)
    cpu = next(alert for alert in alerts if alert.title == "CPU")
    assert cpu.started_at == list_stored_deliveries(gatebell, endpoint.project)[2].received_at
    again = worker.post("/replay", since=SINCE).json()
    assert (again["replayed"], again["still_refused"]) == ([], [broken.id])
    assert worker.post("/replay").status_code == 400
    assert worker.post("/replay", since=SINCE, until=SINCE).json()["replayed"] == []


@pytest.mark.both_databases
@pytest.mark.spec("I16")
def test_a_replay_of_an_alert_that_has_recovered_opens_nothing(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    disk = {"title": "Disk", "fingerprint": "disk", "start_time": "2026-11-21T07:00:00Z"}
    endpoint.accepted(**disk)
    reject_deliveries(gatebell, endpoint, disk)
    endpoint.accepted(**disk, end_time="2026-11-21T08:00:00Z")
    project = Project.path == endpoint.project
    ids = select(Project.id).where(project).scalar_subquery()
    hour = timedelta(hours=1)
    with database_of(gatebell) as session:
        for row in session.scalars(select(Alert).where(Alert.project_id == ids)):
            assert row.recovery_received_at is not None
            row.recovery_received_at -= hour
        for delivery in session.scalars(select(Delivery).where(Delivery.project_id == ids)):
            delivery.received_at -= hour
    script(gatebell, endpoint).post("/replay", since=SINCE)
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert [(alert.status, alert.events) for alert in alerts] == [("resolved", 2)]
    endpoint.accepted(**disk)
    assert [alert.status for alert in list_stored_alerts(gatebell, endpoint.project)][1:] == [
        "triggered"
    ]


def test_a_delivery_that_was_rejected_twice_is_replayed_once(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script(gatebell, endpoint)
    endpoint.post(b"[")
    (first,) = list_stored_deliveries(gatebell, endpoint.project)
    second = worker.post(f"/{first.id}/resend").json()["id"]
    assert worker.post("/replay", since=SINCE).json()["still_refused"] == [second]


def test_the_page_replays_rejected_deliveries(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    reject_deliveries(gatebell, endpoint, {"title": "Disk"})
    (refused,) = list_stored_deliveries(gatebell, endpoint.project)
    browser, page = opened(gatebell, endpoint, "{id}/deliveries?show=refused")
    answer = submit(browser, page, form_to(page, "/replay"), period="hour")
    told = browser.get(gatebell.url + answer.headers["Location"])
    assert "1 delivery was replayed." in told.text
    assert [alert.title for alert in list_stored_alerts(gatebell, endpoint.project)] == ["Disk"]
    shown = opened(gatebell, endpoint, f"{{id}}/deliveries/{refused.id}")[1]
    assert "Replayed as" in shown.text
    assert "Send again" not in shown.text
