"""Incident rules and silences: a silenced alert opens an incident only after the silence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from models import AuditEvent
from tests.support.alerts.incidents import PROJECT, IncidentProject
from tests.support.service.commands import operate
from web.extensions import db
from web.jobs.alert_changes import open_waiting_incidents


def _silence(project: IncidentProject, matcher: str = 'alertname=~".+"') -> Any:
    made = project.api("POST", "/silences", code=201, matchers=matcher, duration="2h")
    project.now = datetime.now(UTC)
    return made


def _window(project: IncidentProject) -> Any:
    starts = (datetime.now(UTC) - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%MZ")
    return project.api(
        *("POST", "/maintenance_windows"),
        code=201,
        name="Move",
        starts_at=starts,
        duration="2h",
        time_zone="UTC",
    )


def _open_waiting(project: IncidentProject) -> None:
    """Open waiting incidents, as the worker does every minute."""
    open_waiting_incidents(project.settings)


def _titles(project: IncidentProject) -> list[str]:
    return [each["title"] for each in project.incidents()]


@pytest.mark.long
@pytest.mark.parametrize("hold", [_silence, _window])
def test_a_silenced_alert_opens_an_incident_after_the_silence(
    project: IncidentProject, hold: Any
) -> None:
    project.rule(close_when_resolved=True)
    held = hold(project)
    project.fire("stays", "ends meanwhile")
    _open_waiting(project)
    assert _titles(project) == []
    project.recover("ends meanwhile")
    where = "silences" if hold is _silence else "maintenance_windows"
    project.api("DELETE", f"/{where}/{held['id']}", code=204)
    _open_waiting(project)
    assert _titles(project) == ["stays"]
    assert project.timeline(1) == ["opened by the rule “all” from alert #1"]
    _open_waiting(project)
    assert _titles(project) == ["stays"]
    project.recover("stays")
    assert [each["status"] for each in project.incidents()] == ["resolved"]


@pytest.mark.long
def test_a_rule_with_open_when_silenced_opens_an_incident_for_a_silenced_alert(
    project: IncidentProject,
) -> None:
    assert project.rule("first")["open_when_silenced"] is False
    second = project.rule("second", open_when_silenced=True)
    _silence(project, 'alertname="a"')
    project.fire("a", "b")
    found = {each["title"]: each["rule_id"] for each in project.incidents()}
    assert found == {"a": second["id"], "b": second["id"] - 1}
    changed = project.api("PUT", f"/incident_rules/{second['id']}", open_when_silenced=False)
    assert changed["open_when_silenced"] is False
    again = project.api("PUT", f"/incident_rules/{second['id']}", name="other")
    assert again["open_when_silenced"] is False


@pytest.mark.long
def test_a_silenced_alert_joins_the_incident_that_holds_its_fingerprint(
    project: IncidentProject,
) -> None:
    project.rule()
    project.fire("a")
    project.recover("a")
    _silence(project)
    project.fire("a")
    (incident,) = project.incidents()
    assert incident["alerts"] == [1, 2]


@pytest.mark.long
def test_a_silenced_alert_opens_no_incident_after_its_rule_was_deleted(
    project: IncidentProject,
) -> None:
    rule = project.rule()
    silence = _silence(project)
    project.fire("a")
    project.api("DELETE", f"/incident_rules/{rule['id']}", code=204)
    project.api("DELETE", f"/silences/{silence['id']}", code=204)
    _open_waiting(project)
    project.rule("later")
    _open_waiting(project)
    assert _titles(project) == []


@pytest.mark.long
def test_a_waiting_incident_opens_when_its_project_is_unarchived(project: IncidentProject) -> None:
    project.rule()
    silence = _silence(project)
    project.fire("a")
    project.api("DELETE", f"/silences/{silence['id']}", code=204)
    project.api("POST", "/archive", code=201)
    _open_waiting(project)
    assert _titles(project) == []
    project.api("POST", "/unarchive", code=201)
    _open_waiting(project)
    assert _titles(project) == ["a"]


def test_the_command_line_sets_open_when_silenced_and_logs_the_change(
    project: IncidentProject,
) -> None:
    app = project.app
    made = operate(
        *(app, "incident-rules", "create", PROJECT, "--name", "Night", "--severity", "critical"),
        "--open-when-silenced",
    )
    assert made["open_when_silenced"] is True
    assert made["severities"] == ["critical"]
    number = str(made["id"])
    assert operate(app, "incident-rules", "show", PROJECT, number) == made
    changed = operate(app, "incident-rules", "change", PROJECT, number, "--skip-silenced", "--off")
    assert (changed["open_when_silenced"], changed["active"]) == (False, False)
    assert changed["severities"] == ["critical"]
    assert operate(app, "incident-rules", "list", PROJECT) == {
        "incident_rules": [changed],
        "total": 1,
    }
    gone = operate(app, "incident-rules", "delete", PROJECT, number)
    assert gone == {**changed, "deleted": True}
    assert operate(app, "incident-rules", "list", PROJECT)["total"] == 0
    with app.app_context():
        events = db.session.scalars(
            select(AuditEvent).where(AuditEvent.kind == "incident_rule.changed")
        )
        assert [each.details["open_when_silenced"] for each in events] == [False]
