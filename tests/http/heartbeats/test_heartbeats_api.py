"""The API /api/v4/projects/:id/heartbeats, and its audit events."""

from urllib.parse import quote

import pytest

from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import alice, make_project, unique
from tests.support.alerts.heartbeats import Job, heartbeat
from tests.support.database.audit_log import list_events_with_subject
from tests.support.database.databases import ON_SQLITE
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS


def caller_for(gatebell: LiveGatebell, project: str) -> ApiCaller:
    at = f"/projects/{quote(project, safe='')}/heartbeats"
    return api_caller(gatebell, alice(gatebell), at)


@pytest.fixture
def project(gatebell: LiveGatebell) -> str:
    return make_project(gatebell, alice(gatebell))


@pytest.mark.long
def test_a_heartbeat_is_created_pinged_changed_and_deleted(
    gatebell: LiveGatebell, project: str
) -> None:
    call = caller_for(gatebell, project)
    asked = {"name": "backup", "every": "5m", "grace": 60, "severity": "high"}
    made = call.done("POST", status=201, json=asked)
    SECRETS.remember(made["url"].rpartition("/")[2])
    assert made["url"].startswith(f"{gatebell.url}/-/ping/")
    assert made["web_url"] == f"{gatebell.url}/{project}/-/heartbeats/{made['id']}"
    assert (made["every"], made["grace"], made["state"]) == (300, 60, "new")
    job = Job(made["id"], project, made["url"])
    job.ping("/start")
    job.ping(method="POST", body=b"all is well")
    one = f"/{made['id']}"
    shown = call.done("GET", one)
    assert "url" not in shown
    assert (shown["state"], shown["pings_count"], shown["last_ping_kind"]) == ("up", 2, "success")
    assert shown["next_expected_at"] < shown["overdue_at"]
    success, start = call.done("GET", f"{one}/pings")
    assert (success["kind"], success["body"], success["method"]) == (
        "success",
        "all is well",
        "POST",
    )
    assert start["kind"] == "start"
    changed = call.done("PUT", one, json={"cron": "30 3 * * *", "time_zone": "Europe/Berlin"})
    assert (changed["every"], changed["cron"]) == (None, "30 3 * * *")
    changed = call.done("PUT", one, json={"every": 60})
    assert (changed["every"], changed["cron"], changed["severity"]) == (60, None, "high")
    job.ping("/7")
    down = call.done("GET", one)
    assert (down["state"], down["alert_iid"], down["last_exit_status"]) == ("down", 1, 7)
    assert call.done("POST", f"{one}/pause")["state"] == "paused"
    assert call.done("POST", f"{one}/resume")["state"] == "up"
    assert call.done("GET", f"{one}/url")["url"] == made["url"]
    reset = call.done("POST", f"{one}/reset_url", status=201, json={"previous_for": "1d"})
    SECRETS.remember(reset["url"].rpartition("/")[2])
    assert reset["previous_url_expires_at"] is not None
    assert [each["id"] for each in call.done("GET")] == [made["id"]]
    call.done("DELETE", one, status=204)
    assert call.done("GET") == []
    assert "not found" in call.refused("GET", one, status=404)


WRONG: tuple[tuple[str, dict[str, object]], ...] = (
    ("every", {}),
    ("every", {"every": "0s"}),
    ("every", {"every": "soon"}),
    ("every", {"every": True}),
    ("every", {"every": 1.5}),
    ("every", {"every": 10**30}),
    ("every", {"every": "5m", "cron": "* * * * *"}),
    ("cron", {"cron": "* * * *"}),
    ("cron", {"cron": "0 0 31 2 *"}),
    ("time_zone", {"cron": "* * * * *", "time_zone": "Mars"}),
    ("time_zone", {"cron": "* * * * *", "time_zone": "../../etc/passwd"}),
    ("time_zone", {"cron": "* * * * *", "time_zone": "localtime"}),
    ("time_zone", {"cron": "* * * * *", "time_zone": "Factory"}),
    ("grace", {"every": "5m", "grace": "-1s"}),
    ("name", {"every": "5m", "name": " "}),
    ("name", {"every": "5m", "name": "two\nlines"}),
    ("name", {"every": "5m", "name": "x" * 101}),
    ("severity", {"every": "5m", "severity": "bad"}),
    ("environment", {"every": "5m", "environment": "a\x00b"}),
    ("description", {"every": "5m", "description": "x" * 1001}),
)


@ON_SQLITE
def test_wrong_values_are_refused_with_their_field(gatebell: LiveGatebell, project: str) -> None:
    call = caller_for(gatebell, project)
    for field, given in WRONG:
        answer = call("POST", json={"name": "backup", **given})
        assert answer.status_code == 400, given
        assert [each["field"] for each in answer.json()["errors"]] == [field], given


def test_a_heartbeat_of_another_project_is_not_found(gatebell: LiveGatebell, project: str) -> None:
    job = heartbeat(gatebell)
    call = caller_for(gatebell, project)
    for method, path in (
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("GET", "/url"),
        ("GET", "/pings"),
        ("POST", "/pause"),
        ("POST", "/reset_url"),
    ):
        assert call(method, f"/{job.id}{path}", json={}).status_code == 404
    assert job.ping().status_code == 200


@pytest.mark.spec("K1")
def test_changes_are_in_the_audit_log_without_the_url(gatebell: LiveGatebell, project: str) -> None:
    name = unique("job")
    job = heartbeat(gatebell, project=project, name=name)
    call = caller_for(gatebell, project)
    call.done("GET", f"/{job.id}/url")
    call.done("PUT", f"/{job.id}", json={"name": name, "every": "1h"})
    gatebell.cli("heartbeats", "pause", project, str(job.id))
    events = list_events_with_subject(gatebell, name)[::-1]
    changes = [(each.kind, each.details.get("change")) for each in events]
    assert changes == [
        ("heartbeat.changed", "created"),
        ("heartbeat.url_read", None),
        ("heartbeat.changed", "paused"),
    ]
    assert job.url.rpartition("/")[2] not in str([each.details for each in events])
