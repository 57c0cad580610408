"""Tests of `gatebell incidents`, whose commands each print one JSON object."""

import pytest
from flask import Flask

from tests.support.alerts.incidents import PROJECT, IncidentProject
from tests.support.service.commands import operate
from web.settings.environment import Settings


@pytest.fixture
def project(app: Flask, settings: Settings) -> IncidentProject:
    return IncidentProject(app, settings)


def test_incidents_can_be_opened_listed_shown_and_closed(project: IncidentProject) -> None:
    app = project.app
    project.fire("Disk full", severity="high")
    create = ("incidents", "create", PROJECT)
    made = operate(app, *create, "--alert", "1", "--assignee", "alice")
    assert made["title"] == "Disk full"
    assert (made["severity"], made["alerts"]) == ("high", [1])
    assert [each["username"] for each in made["assignees"]] == ["alice"]
    assert made["web_url"] == "http://localhost/acme/shop/-/incidents/1"
    assert "<http://localhost/acme/shop/-/alerts/1>" in made["description"]
    operate(app, *create, "--title", "Slow", "--close-when-resolved")

    listed = operate(app, "incidents", "list", PROJECT, "--sort", "oldest")
    assert [each["title"] for each in listed["incidents"]] == ["Disk full", "Slow"]
    assert listed["total"] == 2
    few = operate(app, "incidents", "list", PROJECT, "--search", "full", "--severity", "high")
    assert [each["iid"] for each in few["incidents"]] == [1]

    change = ("incidents", "update", PROJECT, "1", "--status", "resolved", "--severity", "low")
    changed = operate(app, *change, "--assignee", "-")
    assert (changed["status"], changed["severity"], changed["assignees"]) == ("resolved", "low", [])
    assert operate(app, "incidents", "show", PROJECT, "1") == changed
    assert project.timeline(1)[-1] == "closed it and its 1 alert"
    (resolved,) = project.api("GET", "/alert_management_alerts/1/activity")
    assert (resolved["text"], resolved["author"]) == ("resolved", None)


@pytest.mark.long
def test_an_invalid_command_changes_nothing(project: IncidentProject) -> None:
    for arguments, said in (
        (("create", PROJECT), "The incident has no title."),
        (("create", PROJECT, "--alert", "1"), "Alert 1 not found"),
        (("create", PROJECT, "--title", "x", "--assignee", "nobody"), "Assignees must be members"),
        (("create", PROJECT, "--title", " "), "The title must have 1 to 255 characters."),
        (("update", PROJECT, "1", "--title", "x"), "Incident 1 not found"),
        (("show", "acme/shops", "1"), "not found"),
    ):
        done = project.app.test_cli_runner().invoke(args=("incidents", *arguments))
        assert done.exit_code == 1, arguments
        assert said in done.stderr, arguments
    assert operate(project.app, "incidents", "list", PROJECT, "--status", "all") == {
        "incidents": [],
        "total": 0,
    }
