"""The API /api/v4/projects/:id/incidents."""

from typing import Any

import pytest

from tests.support.alerts.incidents import AT, PROJECT, IncidentProject
from tests.support.alerts.senders import item
from tests.support.service.commands import operate


def member(project: IncidentProject, name: str, role: str, scopes: str = "api") -> str:
    """Create a member with this role and return a token of the member."""
    operate(project.app, "users", "create", name, "--email", f"{name}@people.example")
    operate(project.app, "members", "add", PROJECT, name, role)
    return project.token_of(name, scopes)


def refused(project: IncidentProject, method: str, path: str, code: int, **json: Any) -> str:
    """Return the error of a request that is rejected with this status."""
    answer = project.api(method, path, code=code, **json)
    return str(answer.get("error") or answer["message"])


@pytest.mark.long
@pytest.mark.spec("J2")
def test_an_incident_is_composed_from_its_first_alert(project: IncidentProject) -> None:
    project.fire("a", severity="low")
    project.fire("b", severity="critical")
    made = project.api("POST", "/incidents", code=201, alerts=[2, 1], assignees=["alice"])
    assert (made["iid"], made["title"], made["severity"]) == (1, "b", "critical")
    assert made["alerts"] == [1, 2]
    assert made["author"]["username"] == "alice"
    assert [each["username"] for each in made["assignees"]] == ["alice"]
    assert made["close_when_resolved"] is False
    assert "<http://localhost/acme/shop/-/alerts/2>" in made["description"]
    own = project.api(
        "POST", "/incidents", code=201, title=" Slow\nshop ", description="", severity="high"
    )
    assert (own["title"], own["description"], own["severity"]) == ("Slow shop", "", "high")
    assert project.api("GET", "/incidents/2") == own
    assert [each["iid"] for each in project.api("GET", "/incidents/1/alerts")] == [2, 1]
    assert [each["iid"] for each in project.api("GET", "/incidents?alert=2")] == [1]


@pytest.mark.long
def test_the_api_explains_why_it_rejects_an_incident(project: IncidentProject) -> None:
    project.fire("a")
    project.api("POST", "/incidents", code=201, alerts=[1])
    assert "The incident has no title." in refused(
        project, "POST", "/incidents", 400, severity="low"
    )
    for code, said, json in (
        (400, "255", {"title": "x" * 256}),
        (400, "50,000", {"title": "x", "description": "y" * 50_001}),
        (400, "`severity` must be one of", {"title": "x", "severity": "fatal"}),
        (400, "Assignees must be members", {"title": "x", "assignees": ["bob"]}),
        (400, "mutually exclusive", {"title": "x", "assignees": [], "assignee_ids": [1]}),
        (400, "At most 200", {"alerts": list(range(1, 203))}),
        (404, "Alert 7 not found", {"alerts": [1, 7]}),
        (409, "belongs to the open incident 1", {"alerts": [1]}),
    ):
        assert said in refused(project, "POST", "/incidents", code, **json), json
    assert "must be one of" in refused(project, "PUT", "/incidents/1", 400, status="closed")
    assert "not a known parameter" in refused(project, "GET", "/incidents?label=x", 400)
    refused(project, "PUT", "/incidents/2", 404, title="x")
    assert len(project.incidents()) == 1


@pytest.mark.long
def test_a_status_change_of_an_incident_changes_its_alerts(project: IncidentProject) -> None:
    project.fire("a", "b", "c", "d")
    project.api("PUT", "/alert_management_alerts/2", status="acknowledged")
    project.api("PUT", "/alert_management_alerts/3", status="ignored")
    project.api("POST", "/incidents", code=201, alerts=[1, 2, 3])
    acknowledged = project.api("PUT", "/incidents/1", status="acknowledged", title="New")
    assert acknowledged["acknowledged_at"]
    statuses = [project.alert_status(iid) for iid in (1, 2, 3, 4)]
    assert statuses == ["acknowledged", "acknowledged", "ignored", "triggered"]
    project.api("PUT", "/incidents/1", status="resolved")
    statuses = [project.alert_status(iid) for iid in (1, 2, 3, 4)]
    assert statuses == ["resolved", "resolved", "ignored", "triggered"]
    reopened = project.api("PUT", "/incidents/1", status="triggered")
    assert (reopened["resolved_at"], reopened["acknowledged_at"]) == (None, None)
    assert project.alert_status(1) == "resolved"
    assert project.timeline(1) == [
        "opened from alerts #1, #2, #3",
        "changed the title from “a” to “New”",
        "acknowledged it and its 1 alert",
        "closed it and its 2 alerts",
        "reopened it",
    ]
    # The reopened incident collects alerts with the same fingerprints again.
    project.fire("a")
    assert project.api("GET", "/incidents/1")["alerts"] == [1, 2, 3, 5]


@pytest.mark.long
def test_lists_are_filtered_sorted_searched_and_paged(project: IncidentProject) -> None:
    for number, severity in enumerate(("low", "critical", "low", "high", "unknown"), 1):
        project.api("POST", "/incidents", code=201, title=f"Café {number}", severity=severity)
    project.api("PUT", "/incidents/1", status="resolved")
    project.api("PUT", "/incidents/2", status="acknowledged", assignees=["alice"])

    def numbers(query: str) -> list[int]:
        return [each["iid"] for each in project.api("GET", f"/incidents{query}")]

    assert numbers("") == [5, 4, 3, 2, 1]
    assert numbers("?status=open") == [5, 4, 3, 2]
    assert numbers("?status=resolved") == [1]
    assert numbers("?sort=severity") == [2, 4, 3, 1, 5]
    assert numbers("?sort=severity&status=open") == [2, 4, 3, 5]
    assert numbers("?severity=low&sort=oldest") == [1, 3]
    assert numbers("?assignee=alice") == [2]
    assert numbers("?assignee=-&status=open") == [5, 4, 3]
    assert numbers("?search=cafe+4") == [4]
    assert numbers("?search=caf") == [5, 4, 3, 2, 1]
    assert numbers("?search=nothing") == []
    project.api("PUT", "/incidents/3", title="Rénamed")
    assert numbers("?search=renamed") == [3]
    assert numbers("?search=cafe+3") == []
    for sort in ("created", "oldest", "severity"):
        found, url = [], f"{AT}/incidents?per_page=2&sort={sort}"
        while url:
            answer = project.app.test_client().get(url, headers={"PRIVATE-TOKEN": project.token})
            found += [each["iid"] for each in answer.json or []]
            link = answer.headers.get("Link", "")
            url = link.partition("<http://localhost")[2].partition(">")[0]
        assert found == numbers(f"?sort={sort}")
    assert "does not exist" in refused(project, "GET", "/incidents?cursor=x", 400)


@pytest.mark.long
def test_comments_are_listed_changed_and_hidden(project: IncidentProject) -> None:
    project.api("POST", "/incidents", code=201, title="x")
    developer = member(project, "dave", "Developer")
    first = project.api("POST", "/incidents/1/notes", code=201, token=developer, body="**One**")
    assert (first["author"]["username"], first["system"], first["internal"]) == (
        *("dave", False, False),
    )
    second = project.api("POST", "/incidents/1/notes", code=201, body="Two", confidential=True)
    assert second["internal"] is second["confidential"] is True

    def bodies(query: str = "", token: str = "") -> list[str]:
        found = project.api("GET", f"/incidents/1/notes{query}", token=token)
        return [each["body"] for each in found]

    assert bodies() == ["Two", "**One**", "opened"]
    assert bodies("?sort=asc&activity_filter=only_comments") == ["**One**", "Two"]
    assert bodies("?activity_filter=only_activity") == ["opened"]
    guest = _guest_who_sees_alerts(project)
    assert bodies(token=guest) == ["**One**", "opened"]
    project.api("GET", f"/incidents/1/notes/{second['id']}", code=404, token=guest)

    at = f"/incidents/1/notes/{first['id']}"
    assert project.api("PUT", at, token=developer, body="Three")["body"] == "Three"
    project.api("PUT", f"/incidents/1/notes/{second['id']}", code=403, token=developer, body="x")
    project.api("PUT", at, body="By the owner")
    opened = project.api("GET", "/incidents/1/notes?sort=asc")[0]
    project.api("DELETE", f"/incidents/1/notes/{opened['id']}", code=403)
    assert "Enter a comment" in refused(project, "POST", "/incidents/1/notes", 400, body=" ")
    assert "10,000" in refused(project, "POST", "/incidents/1/notes", 400, body="x" * 10_001)
    project.api("DELETE", at, code=204, token=developer)
    assert bodies() == ["Two", "opened"]
    project.api("GET", at, code=404)


def _guest_who_sees_alerts(project: IncidentProject) -> str:
    token = member(project, "gus", "Guest")
    operate(project.app, "users", "create", "root", "--email", "r@people.example", "--admin")
    made = project.app.test_client().post(
        "/api/v4/member_roles",
        headers={"PRIVATE-TOKEN": project.token_of("root", "api admin_mode")},
        json={"name": "watcher", "base_access_level": 10, "read_alerts": True},
    )
    assert made.json is not None
    operate(project.app, "members", "give-member-role", PROJECT, "gus", str(made.json["id"]))
    return token


@pytest.mark.long
def test_a_repeated_request_opens_only_one_incident(project: IncidentProject) -> None:
    headers = {"PRIVATE-TOKEN": project.token, "Idempotency-Key": "night-1"}
    answers = [
        project.app.test_client().post(f"{AT}/incidents", headers=headers, json={"title": "x"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    assert len(project.incidents()) == 1


@pytest.mark.long
def test_every_change_is_in_the_audit_log(project: IncidentProject) -> None:
    rule = project.rule(close_when_resolved=True)
    project.fire("a")
    project.api("PUT", "/incidents/1", severity="low")
    project.api("PUT", "/incidents/1", severity="low")  # The severity is already low.
    project.api("POST", "/incidents/1/notes", code=201, body="A secret? No.")
    project.recover("a")
    project.api("DELETE", "/incidents/1", code=204)
    project.api("DELETE", f"/incident_rules/{rule['id']}", code=204)
    operate(project.app, "users", "create", "root", "--email", "r@people.example", "--admin")
    answer = project.app.test_client().get(
        "/api/v4/audit_events?per_page=100",
        headers={"PRIVATE-TOKEN": project.token_of("root", "api admin_mode")},
    )
    found = [
        (event["details"]["kind"] if "kind" in event["details"] else event["event_name"])
        for event in reversed(answer.json or [])
    ]
    assert [kind for kind in found if kind.startswith("incident")] == [
        "incident_rule.created",
        "incident.created",
        "incident.changed",
        "incident.changed",
        "incident.changed",
        "incident.removed",
        "incident_rule.removed",
    ]
    # Numbers are not reused.
    assert project.api("POST", "/incidents", code=201, title="y")["iid"] == 2


def test_markdown_in_alert_fields_is_escaped(project: IncidentProject) -> None:
    evil = "*x* [y](javascript:alert(1)) `z` <b>\n# H\n\n\n1. n _u_ a_b C:\\dir ~~s~~"
    project.send(
        item(
            "New: Alert",
            labels={"alertname": "New: Alert", "service": "`*"},
            annotations={"description": evil},
            generatorURL="http://p.example/?g0.expr=a%60%60b%60",
        )
    )
    made = project.api("POST", "/incidents", code=201, alerts=[1])
    assert made["title"] == "New: Incident 1"
    assert "**full_query:** ``` a``b` ```  \n" in made["description"]
    assert "**Service:** \\`\\*  \n" in made["description"]
    assert (
        "**Description:** \\*x\\* \\[y](javascript:alert(1)) \\`z\\` \\<b>  \n\\# H  \n"
        "1\\. n \\_u\\_ a_b C:\\dir \\~~s\\~~  \n"
    ) in made["description"]
