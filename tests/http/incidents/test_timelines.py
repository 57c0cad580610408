"""Timelines of alerts and of incidents."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from models import Deployment
from tests.support.alerts.incidents import PROJECT, IncidentProject
from tests.support.service.commands import operate
from web.extensions import db

SHA = "0123456789abcdef0123456789abcdef01234567"


def deploy(project: IncidentProject, environment: str, ref: str, *, minutes_ago: int) -> None:
    """Report a deployment that started the given number of minutes ago."""
    body: dict[str, Any] = {
        "environment": environment,
        "sha": SHA,
        "ref": ref,
        "tag": False,
        "status": "success",
    }
    made = project.api("POST", "/deployments", code=201, **body)
    with project.app.app_context():
        at = project.now - timedelta(minutes=minutes_ago)
        is_it = Deployment.id == made["id"]
        db.session.execute(update(Deployment).where(is_it).values(created_at=at, updated_at=at))
        db.session.commit()


def summary_of(line: dict[str, Any]) -> tuple[str, object]:
    """Return the kind of a line, and its text or its main value."""
    if line["kind"] == "report":
        return "report", [each["action"] for each in line["reports"]]
    if line["kind"] == "deployment":
        return "deployment", line["deployment"]["ref"]
    return line["kind"], line["text"]


@pytest.mark.long
def test_the_timeline_of_an_alert_includes_recent_deployments(project: IncidentProject) -> None:
    for environment, ref, minutes in (
        ("prod", "long-before", 90),
        ("prod", "suspect", 30),
        ("staging", "elsewhere", 20),
    ):
        deploy(project, environment, ref, minutes_ago=minutes)
    for _ in range(3):
        project.now_fire("Disk full", platform_environment_name="prod")
    project.api("POST", "/alert_management_alerts/1/notes", code=201, body="Growing it")
    project.api("PUT", "/alert_management_alerts/1", status="acknowledged")
    project.now_fire("Disk full", platform_environment_name="prod")
    project.recover("Disk full")
    deploy(project, "prod", "afterwards", minutes_ago=-60)

    story = project.api("GET", "/alerts/1/timeline?sort=asc")
    assert [summary_of(each) for each in story] == [
        ("deployment", "suspect"),
        ("report", ["opened"]),
        ("report", ["joined", "joined"]),
        ("note", "Growing it"),
        ("status", "acknowledged"),
        ("report", ["joined"]),
        ("report", ["resolved"]),
    ]
    assert story[2]["until"] > story[2]["at"] > story[1]["at"]
    newest_first = project.api("GET", "/alerts/1/timeline")
    assert [summary_of(each) for each in newest_first] == [summary_of(each) for each in story[::-1]]
    assert operate(project.app, "alerts", "timeline", PROJECT, "1")["timeline"] == newest_first
    assert project.api("GET", "/alerts/2/timeline", code=404)


@pytest.mark.long
def test_pages_of_a_timeline_contain_each_line_once(project: IncidentProject) -> None:
    deploy(project, "prod", "before", minutes_ago=5)
    for number in range(6):
        project.now_fire("Disk full", platform_environment_name="prod")
        project.api("POST", "/alert_management_alerts/1/notes", code=201, body=f"note {number}")
    for sort in ("asc", "desc"):
        at = f"/api/v4/projects/acme%2Fshop/alerts/1/timeline?sort={sort}"
        client, headers = project.app.test_client(), {"PRIVATE-TOKEN": project.token}
        whole, url = client.get(at, headers=headers).json, f"{at}&per_page=2"
        seen: list[Any] = []
        while url:
            answer = client.get(url, headers=headers)
            seen += answer.json or []
            links = answer.headers.get("Link", "")
            following = [link for link in links.split(",") if 'rel="next"' in link]
            url = following[0].partition("<http://localhost")[2].partition(">")[0] if links else ""
        assert seen == whole
        assert len(seen) == 13
    for cursor in ("a", "r1", "a1.a1", "x1", "a99999999999999999999"):
        project.api("GET", f"/alerts/1/timeline?cursor={cursor}", code=400)


def test_timelines_hide_deployments_without_access_to_environments(
    project: IncidentProject,
) -> None:
    deploy(project, "prod", "suspect", minutes_ago=5)
    project.fire("Disk full", platform_environment_name="prod")
    project.api("POST", "/incidents", code=201, alerts=[1])
    at = ("/alerts/1/timeline", "/incidents/1/timeline")
    for path in at:
        assert "deployment" in {each["kind"] for each in project.api("GET", path)}
    project.api("PUT", "", environments_access_level="disabled")
    for path in at:
        assert "deployment" not in {each["kind"] for each in project.api("GET", path)}


@pytest.mark.long
def test_the_timeline_of_an_incident_includes_its_alerts(project: IncidentProject) -> None:
    deploy(project, "prod", "suspect", minutes_ago=10)
    runbook = {"runbook_url": "https://wiki.example/disk"}
    project.fire("Disk full", "Slow", platform_environment_name="prod", **runbook)
    project.api("POST", "/incidents", code=201, alerts=[1, 2], title="All down")
    project.api("POST", "/incidents/1/notes", code=201, body="Looking")
    project.api("PUT", "/incidents/1", status="acknowledged")
    project.api("POST", "/alert_management_alerts/2/notes", code=201, body="An index")
    project.recover("Disk full")

    story = project.api("GET", "/incidents/1/timeline?sort=asc")
    assert [(*summary_of(each), each["alerts"]) for each in story] == [
        ("deployment", "suspect", []),
        ("opened", "Disk full", [1, 2]),
        ("incident", "opened from alerts #1, #2", [1, 2]),
        ("note", "Looking", []),
        ("incident", "acknowledged it and its 2 alerts", []),
        ("status", "acknowledged", [1, 2]),
        ("note", "An index", [2]),
        ("ended", "Disk full", [1]),
    ]
    assert {each["note_id"] is None for each in story if each["text"] == "Looking"} == {False}
    told_by_command = operate(project.app, "incidents", "timeline", PROJECT, "1")
    assert len(told_by_command["timeline"]) == len(story)
    around = project.api("GET", "/incidents/1/surroundings")
    assert around == {"on_call": [], "runbooks": ["https://wiki.example/disk"]}
