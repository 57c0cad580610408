"""Ping URLs of heartbeats, with the same signals as Healthchecks."""

import uuid

import pytest
import requests
from sqlalchemy import select

from models import Heartbeat, HeartbeatPing
from tests.support.accounts.people import database_of
from tests.support.alerts.heartbeats import Job, heartbeat
from tests.support.database.databases import ON_POSTGRES, ON_SQLITE
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings


def pings_of(gatebell: LiveGatebell, job: Job) -> list[HeartbeatPing]:
    with database_of(gatebell) as session:
        found = session.scalars(
            select(HeartbeatPing)
            .where(HeartbeatPing.heartbeat_id == job.id)
            .order_by(HeartbeatPing.id)
        ).all()
        session.expunge_all()
        return list(found)


def state_of(gatebell: LiveGatebell, job: Job) -> Heartbeat:
    with database_of(gatebell) as session:
        found = session.get_one(Heartbeat, job.id)
        session.expunge_all()
        return found


SIGNALS = {
    "": "success",
    "/start": "start",
    "/fail": "fail",
    "/log": "log",
    "/0": "success",
    "/3": "fail",
}


def test_a_ping_is_answered_and_logged(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    for method in ("GET", "HEAD", "POST"):
        for signal in SIGNALS:
            answer = job.ping(signal, method=method)
            assert answer.status_code == 200
            assert answer.text == ("" if method == "HEAD" else "OK")
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert answer.headers["Ping-Body-Limit"] == "10000"
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            assert "Set-Cookie" not in answer.headers
    found = pings_of(gatebell, job)
    assert [ping.kind for ping in found] == [*SIGNALS.values()] * 3
    assert {ping.method for ping in found} == {"GET", "HEAD", "POST"}
    assert {ping.sender for ping in found} == {"127.0.0.1"}
    assert all(ping.user_agent.startswith("python-requests/") for ping in found)


def test_a_failure_opens_an_alert_and_a_success_resolves_it(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell, name="nightly backup")
    assert job.ping("/fail", method="POST", body=b"no space left").status_code == 200
    (alert,) = list_stored_alerts(gatebell, job.project)
    assert (alert.title, alert.status) == ("Heartbeat failed: nightly backup", "triggered")
    assert "no space left" in (alert.description or "")
    # Further failures are counted in the same alert.
    assert job.ping("/fail").status_code == job.ping().status_code == 200
    (alert,) = list_stored_alerts(gatebell, job.project)
    assert (alert.status, alert.events) == ("resolved", 2)


def test_an_exit_status_is_a_failure_unless_it_is_zero(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    assert job.ping("/0").status_code == 200
    assert list_stored_alerts(gatebell, job.project) == []
    assert job.ping("/255").status_code == 200
    (alert,) = list_stored_alerts(gatebell, job.project)
    assert "exit status 255" in (alert.description or "")
    assert job.ping("/256").status_code == 400
    assert [ping.exit_status for ping in pings_of(gatebell, job)] == [0, 255]


@ON_SQLITE
def test_a_run_id_is_a_uuid(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    answer = job.ping("/start", rid="first")
    assert (answer.status_code, answer.text.partition(":")[0]) == (400, "invalid uuid format")
    assert job.ping("/start", rid=str(uuid.uuid4())).status_code == 200


def test_the_duration_of_a_run_is_measured_by_its_id(gatebell: LiveGatebell) -> None:
    job, first, second = heartbeat(gatebell), str(uuid.uuid4()), str(uuid.uuid4())
    job.ping("/start", rid=first)
    job.ping(rid=second)
    assert state_of(gatebell, job).started_rid == first
    job.ping("/start", rid=first)
    job.ping(rid=first)
    start, other, again, ended = pings_of(gatebell, job)
    assert other.duration_ms is None
    assert ended.duration_ms is not None
    assert (start.duration_ms, again.duration_ms) == (None, None)
    found = state_of(gatebell, job)
    assert (found.started_ms, found.last_duration_ms) == (None, ended.duration_ms)


def test_only_the_beginning_of_a_long_body_is_stored(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    sent = b"\xff\x00" + b"x" * 200_000
    assert job.ping(method="POST", body=sent).status_code == 200
    (ping,) = pings_of(gatebell, job)
    assert ping.body == sent[:10_000]
    assert ping.size == len(sent)


@ON_POSTGRES
def test_all_unknown_urls_get_the_same_answer(gatebell: LiveGatebell) -> None:
    keys = (str(uuid.uuid4()), "x", "0" * 4_000, "%00", str(uuid.uuid4()).upper())
    with requests.Session() as session:
        session.trust_env = False
        answers = {
            (found.status_code, found.text, found.headers["Content-Type"])
            for key in keys
            for signal, body in (("", b""), ("/fail", b"x" * 20_000), ("/3", b""))
            for found in [session.post(f"{gatebell.url}/-/ping/{key}{signal}", data=body)]
        }
    assert answers == {(404, "not found\n", "text/plain; charset=utf-8")}


@pytest.mark.long
@ON_POSTGRES
def test_pings_are_limited_by_heartbeat(gatebell: LiveGatebell) -> None:
    flooded, other = heartbeat(gatebell), heartbeat(gatebell)
    with changed_settings(gatebell, heartbeat_rate_limit="2/hour"):
        statuses = [flooded.ping().status_code for _ in range(40)]
        assert 429 in statuses
        answer = flooded.ping()
        assert other.ping().status_code == 200
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.long
@ON_SQLITE
def test_pings_are_limited_by_address(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    with changed_settings(gatebell, heartbeat_address_rate_limit="2/hour"):
        assert 429 in [job.ping().status_code for _ in range(40)]


def test_an_old_url_works_until_its_overlap_ends(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    command = ("heartbeats", "reset-url", job.project, str(job.id))
    kept = Job(job.id, job.project, gatebell.cli(*command, "--overlap", "1h")["url"])
    assert kept.url != job.url
    assert [each.ping().status_code for each in (job, kept)] == [200, 200]
    last = Job(job.id, job.project, gatebell.cli(*command)["url"])
    assert [each.ping().status_code for each in (job, kept, last)] == [404, 404, 200]


def test_a_paused_heartbeat_logs_pings_and_opens_no_alert(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    job.ping("/fail")
    gatebell.cli("heartbeats", "pause", job.project, str(job.id))
    (alert,) = list_stored_alerts(gatebell, job.project)
    assert alert.status == "resolved"
    job.ping("/fail")
    assert len(pings_of(gatebell, job)) == 2
    assert state_of(gatebell, job).state == "paused"
    assert len(list_stored_alerts(gatebell, job.project)) == 1
    gatebell.cli("heartbeats", "resume", job.project, str(job.id))
    job.ping("/fail")
    assert [each.status for each in list_stored_alerts(gatebell, job.project)] == [
        "resolved",
        "triggered",
    ]


def test_deleting_a_heartbeat_resolves_its_alert_and_ends_its_url(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    job.ping("/fail")
    gatebell.cli("heartbeats", "delete", job.project, str(job.id))
    assert job.ping().status_code == 404
    (alert,) = list_stored_alerts(gatebell, job.project)
    assert alert.status == "resolved"
    assert pings_of(gatebell, job) == []
