"""Responders of incident rules in the API, the CLI and the audit log, and their deletion."""

import pytest

from models import AuditEvent
from tests.support.alerts.incidents import PROJECT, IncidentProject
from tests.support.service.commands import operate
from web.extensions import db

ROTATION = {"type": "daily", "users": ["alice"], "starts_on": "2026-01-01"}


def add_schedule(project: IncidentProject, of_group: bool = False) -> int:  # noqa: FBT001, FBT002 - as the API has two
    at = "/api/v4/groups/acme" if of_group else "/api/v4/projects/acme%2Fshop"
    answer = project.app.test_client().post(
        f"{at}/on_call/schedules",
        headers={"PRIVATE-TOKEN": project.token},
        json={"name": "Primary", "time_zone": "UTC", "rotations": [ROTATION]},
    )
    assert answer.status_code == 201, answer.text
    assert answer.json is not None
    return int(answer.json["id"])


def shown(rule: dict[str, list[dict[str, str]]]) -> list[str]:
    return [f"{each['type']}:{each['name']}" for each in rule["responders"]]


@pytest.mark.long
def test_responders_are_users_and_schedules_of_the_project_or_a_group_above(
    project: IncidentProject,
) -> None:
    schedule = add_schedule(project, of_group=True)
    rule = project.rule(responders=["schedule:primary", {"type": "user", "name": "alice"}])
    at = f"/incident_rules/{rule['id']}"
    assert shown(rule) == ["schedule:Primary", "user:alice"]
    for value, says in (
        ("user:nobody", '"nobody" is not a member who can see the alerts.'),
        ("schedule:none", 'Schedule "none" not found here or in ancestor groups.'),
        ("channel:chat", "Responders must be users or schedules."),
        ("alice", '"alice" is not a target'),
    ):
        answer = project.api("PUT", at, code=400, responders=[value])
        assert says in str(answer)
    assert shown(project.api("PUT", at, severities="low")) == ["schedule:Primary", "user:alice"]
    assert shown(project.api("PUT", at, responders=["user:alice"])) == ["user:alice"]
    made = operate(
        *(project.app, "incident-rules", "create", PROJECT),
        *("--name", "two", "--responder", "schedule:Primary"),
    )
    assert made["responders"] == [{"type": "schedule", "id": schedule, "name": "Primary"}]
    with project.app.app_context():
        events = db.session().query(AuditEvent).order_by(AuditEvent.id).all()
        called = [each.details.get("responders") for each in events if "rule" in each.kind]
    assert called == [
        ["the people on call in Primary", "@alice"],
        ["the people on call in Primary", "@alice"],
        ["@alice"],
        ["the people on call in Primary"],
    ]


def test_a_rule_with_a_former_member_can_be_changed(project: IncidentProject) -> None:
    operate(project.app, "users", "create", "bob", "--email", "bob@people.example")
    operate(project.app, "members", "add", PROJECT, "bob", "Developer")
    rule = project.rule(responders=["user:bob"])
    operate(project.app, "members", "remove", PROJECT, "bob")
    target = {"type": "user", "id": rule["responders"][0]["id"]}
    at = f"/incident_rules/{rule['id']}"
    assert shown(project.api("PUT", at, name="x", responders=[target])) == ["user:bob"]
    project.api("PUT", at, responders=[])
    project.api("PUT", at, code=400, responders=[target])
    project.api("PUT", at, code=400, responders=["user:bob"])


@pytest.mark.long
@pytest.mark.parametrize("of_group", [False, True])
def test_a_schedule_used_by_a_rule_cannot_be_deleted(
    project: IncidentProject,
    of_group: bool,  # noqa: FBT001
) -> None:
    schedule = add_schedule(project, of_group)
    rule = project.rule("Outage", responders=["schedule:Primary"])
    place = "acme" if of_group else PROJECT
    refused = project.app.test_cli_runner().invoke(
        args=("schedules", "delete", place, str(schedule))
    )
    where = f" of {PROJECT}" if of_group else ""
    says = f"The incident rule Outage{where} pages the schedule Primary."
    assert (refused.exit_code, says in refused.output) == (1, True), refused.output
    operate(project.app, "groups", "create", "other", "--owner", "alice")
    moved = project.api("PUT", "/transfer", code=409 if of_group else 200, namespace="other")
    if of_group:
        assert "The incident rule Outage pages the schedule Primary." in str(moved)
        project.api("PUT", f"/incident_rules/{rule['id']}", responders=[])
        operate(project.app, "schedules", "delete", place, str(schedule))
