"""Tests of handling alerts in the API: assignees, notes, activity, reports and bulk changes."""

from typing import Any

import pytest

from domain.access.roles import Role
from domain.accounts.users import get_user
from tests.support.accounts.people import alice, database_of
from tests.support.accounts.team import give_role, person_for, take_role
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, captured, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
ALERTS = "alert_management_alerts"


def script(gatebell: LiveGatebell, endpoint: Endpoint, **who: object) -> Script:
    return script_of(gatebell, endpoint.project, ALERTS, **who)  # type: ignore[arg-type]


def statuses(gatebell: LiveGatebell, endpoint: Endpoint) -> list[str]:
    return [alert.status for alert in list_stored_alerts(gatebell, endpoint.project)]


@pytest.mark.spec("J5", "G5")
def test_an_alert_has_every_field_of_its_page(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    body = captured("17_prometheus_instance_down_2.json")
    assert endpoint.post(body).status_code == 200

    shown = script(gatebell, endpoint, scopes="read_alerts").get("/1")

    assert shown["query"].startswith("up")
    assert shown["generator_url"].startswith("http")
    assert shown["severity_reason"]
    assert shown["grouping"]["sentence"].startswith("Reports with the same fingerprint")
    assert shown["grouping"]["fields"]["fingerprint"] == shown["details"]["fingerprint"]
    assert shown["integration_id"] == endpoint.id
    assert shown["received_at"].endswith("Z")
    kept = script(gatebell, endpoint).send("GET", "/1/payload")
    assert kept.content == body
    assert kept.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.both_databases
@pytest.mark.spec("G5")
def test_an_alert_can_be_assigned_and_unassigned(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    worker = script(gatebell, endpoint, scopes="write_alerts")
    person = person_for(gatebell, Role.DEVELOPER)
    give_role(gatebell, endpoint.project, person, Role.DEVELOPER)
    with database_of(gatebell) as session:
        person_id = get_user(person.username, session=session).id

    assert worker.put("/1", assignee=person.username).json()["assignee"] == person.username
    assert worker.put("/1", assignee="").json()["assignee"] is None
    both = worker.put("/1", assignee_id=person_id, status="acknowledged").json()
    assert (both["assignee"], both["status"]) == (person.username, "acknowledged")
    assert worker.put("/1").json() == both  # An empty request changes nothing.
    assert worker.put("/1", assignee_id=0).json()["assignee"] is None
    assert worker.put("/1", assignee=None).status_code == 200

    contradiction = worker.put("/1", assignee="x", assignee_id=1)
    assert contradiction.status_code == 400
    assert "mutually exclusive" in contradiction.json()["error"]


@pytest.mark.spec("G5")
def test_an_assignee_must_be_a_member_of_the_project(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    worker, stranger = script(gatebell, endpoint), person_for(gatebell, None)
    reporter = person_for(gatebell, Role.REPORTER)
    give_role(gatebell, endpoint.project, reporter, Role.REPORTER)
    left = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, endpoint.project, left, Role.MAINTAINER)
    take_role(gatebell, endpoint.project, left)
    with database_of(gatebell) as session:
        ids = [get_user(each.username, session=session).id for each in (stranger, left)]

    refused_users: list[dict[str, Any]] = [
        {"assignee": stranger.username},
        {"assignee": reporter.username},
        {"assignee": left.username},
        *({"assignee_id": each} for each in (*ids, 2**40)),
    ]
    for given in refused_users:
        # The status of a rejected request is not changed, either.
        refused = worker.put("/1", status="resolved", **given)
        assert refused.status_code == 400, given
        assert "must be a member of the project" in refused.json()["error"]
        assert refused.json()["errors"][0]["field"].startswith("assignee")
    assert statuses(gatebell, endpoint) == ["triggered"]


@pytest.mark.both_databases
@pytest.mark.spec("G5")
def test_notes_are_created_and_listed_with_the_activity(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x", title="Disk", severity="low")
    worker, me = script(gatebell, endpoint, scopes="write_alerts"), alice(gatebell).username
    made = worker.post("/1/notes", body="**Grew** the volume\r\n<b>")
    worker.put("/1", status="acknowledged")
    worker.put("/1", assignee=me)
    endpoint.accepted(fingerprint="x", title="Disk full", severity="high")
    worker.post("/1/notes", body="second")

    assert made.status_code == 201
    assert made.json()["author"]["username"] == me
    assert made.json()["body"] == "**Grew** the volume\n<b>"
    notes = worker.get("/1/notes")
    assert [each["body"] for each in notes] == ["second", "**Grew** the volume\n<b>"]
    assert notes[1] == made.json()
    activity = worker.get("/1/activity")
    assert [(each["kind"], each["text"]) for each in activity] == [
        ("note", "second"),
        ("change", ""),
        ("assignee", me),
        ("status", "acknowledged"),
        ("note", "**Grew** the volume\n<b>"),
    ]
    assert activity[1]["author"] is None
    raised = {"field": "severity", "old": "low", "new": "high", "is_rise": True}
    assert raised in activity[1]["changes"]
    first = worker.send("GET", "/1/notes", params={"per_page": 1})
    following = worker.api.gatebell.http().get(
        first.links["next"]["url"], headers={"PRIVATE-TOKEN": worker.api.token}
    )
    assert following.json() == notes[1:]
    assert "next" not in following.links


@pytest.mark.spec("G5")
def test_an_invalid_note_is_rejected_with_the_reason(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    worker = script(gatebell, endpoint)
    for body, words in (
        ({}, "Enter a note"),
        ({"body": " \n "}, "Enter a note"),
        ({"body": 3}, "must be a string"),
        ({"body": "\x00"}, "must not contain a NUL"),
        ({"body": "x" * 10_001}, "at most 10,000 characters"),
    ):
        refused = worker.post("/1/notes", **body)
        assert refused.status_code == 400, body
        assert words in refused.json()["error"]
        assert refused.json()["errors"][0]["field"] == "body"
    for path in ("/2/notes", "/2/activity", "/2/occurrences", "/2/payload"):
        assert worker.send("GET", path).status_code == 404
    assert worker.post("/2/notes", body="x").status_code == 404
    forged = worker.send("GET", "/1/notes?cursor=1_1")
    assert forged.status_code == 400


@pytest.mark.both_databases
@pytest.mark.spec("J5")
def test_the_reports_of_an_alert_link_to_their_deliveries(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for title in ("a", "b"):
        endpoint.post_json([{"title": "other"}, {"title": title, "fingerprint": "x"}])
    worker = script(gatebell, endpoint)
    iid = next(each["iid"] for each in worker.get(params={"status": "all"}) if each["title"] == "b")

    reports = worker.get(f"/{iid}/occurrences")

    assert [each["action"] for each in reports] == ["joined", "opened"]
    assert {each["item"] for each in reports} == {2}
    assert {each["integration_id"] for each in reports} == {endpoint.id}
    page = worker.send("GET", f"/{iid}/occurrences", params={"per_page": 1})
    assert page.json() == reports[:1]
    cursor = page.links["next"]["url"].rpartition("cursor=")[2]
    assert worker.get(f"/{iid}/occurrences", params={"cursor": cursor}) == reports[1:]


@pytest.mark.both_databases
@pytest.mark.spec("G5")
def test_the_status_of_several_alerts_can_be_changed_by_number(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="old", fingerprint="x")
    worker = script(gatebell, endpoint, scopes="write_alerts")
    worker.put("/1", status="resolved")
    endpoint.accepted(title="new", fingerprint="x")
    endpoint.accepted(title="other")

    report = worker.put("/status", status="triggered", iids=[1, 2, 9])
    assert report.status_code == 200
    assert report.json() == {
        "status": "triggered",
        "changed": [],
        "unchanged": [2],
        "conflicts": [{"iid": 1, "title": "old"}],
        "not_found": [9],
        "next_cursor": None,
    }
    form = worker.send("PUT", "/status", data={"status": "resolved", "iids[]": ["2", "3"]})
    assert form.json()["changed"] == [2, 3]
    assert statuses(gatebell, endpoint) == ["resolved"] * 3
    assert len(worker.get("/2/activity")) == 1


@pytest.mark.both_databases
@pytest.mark.spec("G5")
def test_the_status_of_all_matching_alerts_is_changed_in_batches(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json([{"title": f"a{n}", "severity": "low"} for n in range(203)])
    endpoint.accepted(title="worse", severity="high")
    worker = script(gatebell, endpoint, scopes="write_alerts")
    wanted = {"status": "ignored", "filter": {"severity": "low"}}

    first = worker.put("/status", **wanted).json()
    assert first["next_cursor"]
    second = worker.put("/status", **wanted, cursor=first["next_cursor"]).json()

    assert (len(first["changed"]), len(second["changed"])) == (200, 3)
    assert second["next_cursor"] is None
    assert sorted(statuses(gatebell, endpoint)) == ["ignored"] * 203 + ["triggered"]
    # An empty filter matches all open alerts.
    rest = worker.put("/status", status="resolved", filter={}).json()
    assert rest["changed"] == [204]


@pytest.mark.spec("G5")
def test_an_invalid_bulk_change_changes_nothing(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    worker = script(gatebell, endpoint)
    for given, words in (
        ({"iids": [1]}, "`status` is missing"),
        ({"status": "closed", "iids": [1]}, "`status` must be one of triggered"),
        ({"status": "resolved"}, "Exactly one of `iids` and `filter`"),
        ({"status": "resolved", "iids": [1], "filter": {}}, "Exactly one of `iids` and `filter`"),
        ({"status": "resolved", "iids": list(range(1, 202))}, "at most 200"),
        ({"status": "resolved", "iids": ["x"]}, "`iids.0` must be a whole number"),
        ({"status": "resolved", "filter": {"sevrity": "low"}}, "`filter.sevrity` is not a known"),
        ({"status": "resolved", "filter": {"severity": "worst"}}, "`filter.severity` must be one"),
        ({"status": "resolved", "filter": {}, "cursor": "x"}, "does not exist"),
    ):
        refused = worker.put("/status", **given)
        assert refused.status_code == 400, refused.text
        assert words in refused.json()["error"]
    assert statuses(gatebell, endpoint) == ["triggered"]
