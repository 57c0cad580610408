"""The API /api/v4/projects/:id/escalation_policies, and `gatebell escalations`."""

from typing import Any

import pytest

from domain.access.roles import Role
from tests.support.accounts.administration import find_last_event
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, alice, make_project, make_user, unique
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def project_of(gatebell: LiveGatebell) -> tuple[str, ApiCaller, Person]:
    """Return a new project of Alice, an API caller below its path, and the developer Bob."""
    path = make_project(gatebell, alice(gatebell))
    bob = make_user(gatebell, name="bob")
    give_role(gatebell, path, bob, Role.DEVELOPER)
    return path, api_caller(gatebell, alice(gatebell), f"/projects/{path.replace('/', '%2F')}"), bob


@pytest.mark.both_databases
@pytest.mark.spec("J1", "K1")
def test_a_policy_is_created_changed_listed_and_deleted(gatebell: LiveGatebell) -> None:
    _, call, bob = project_of(gatebell)
    me, name = alice(gatebell).username, unique("Night")
    made = call.done(
        "POST",
        "/escalation_policies",
        status=201,
        json={
            "name": name,
            "default": True,
            "repeats": 2,
            "steps": [
                f"0s user:{me}",
                {"delay": "5m", "targets": [{"type": "user", "name": bob.username}]},
            ],
        },
    )
    assert (made["name"], made["default"], made["repeats"]) == (name, True, 2)
    assert made["repeat_pause_seconds"] == 300
    assert [each["delay_seconds"] for each in made["steps"]] == [0, 300]
    assert [each["targets"][0]["name"] for each in made["steps"]] == [me, bob.username]
    assert made["summary"] == (
        f"Immediately: @{me}. After 5 min: @{bob.username}. "
        "Repeats 2 times, 5 min after the last step."
    )
    event = find_last_event(gatebell, made["name"])
    assert event.kind == "escalation_policy.created"
    assert event.details["steps"] == made["summary"]

    at = f"/escalation_policies/{made['id']}"
    changed = call.done("PUT", at, json={"repeats": 0, "repeat_pause": "1h"})
    assert (changed["repeats"], changed["repeat_pause_seconds"]) == (0, 3600)
    assert changed["steps"] == made["steps"]
    target = {"type": "user", "id": made["steps"][1]["targets"][0]["id"]}
    changed = call.done("PUT", at, json={"steps": [{"delay": "1m30s", "targets": [target]}]})
    assert changed["summary"] == f"After 1 min 30 s: @{bob.username}. No repeats."
    assert changed["retrigger_when_critical"] is True
    changed = call.done("PUT", at, json={"retrigger_when_critical": False})
    assert changed["summary"].endswith(
        "An acknowledged alert that becomes critical stays acknowledged."
    )
    call.refused("PUT", at, json={"retrigger_when_critical": "perhaps"}, status=400)
    assert call.done("GET", at) == changed
    assert call.done("GET", "/escalation_policies") == [changed]
    call.done("DELETE", at, status=204)
    assert call.done("GET", "/escalation_policies") == []
    call.refused("GET", at, status=404)


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "`name` is missing"),
    ({"name": "Night"}, "`steps` is missing"),
    ({"name": "Night", "steps": []}, "`steps` has too few items"),
    ({"name": "Night", "steps": ["soon user:alice"]}, '"soon" is not a duration'),
    ({"name": "Night", "steps": ["5m"]}, "choose between 1 and 20 targets"),
    ({"name": "Night", "steps": ["5m alice"]}, '"5m alice" is not a duration'),
    ({"name": "Night", "steps": ["0s user:nobody-here"]}, '"nobody-here" is not a member'),
    ({"name": "Night", "steps": ["0s schedule:x\x00"]}, "NUL"),
    ({"name": "Night", "steps": ["0s schedule:x"]}, 'Schedule "x" not found here'),
    ({"name": "Night", "steps": ["0s channel:ops"]}, 'Channel "ops" not found here'),
    ({"name": "Night", "steps": ["25h user:{me}"]}, "the delay can be at most 24 hours"),
    ({"name": "Night", "steps": ["5m user:{me}", "1m user:{me}"]}, "Sort the steps by delay"),
    ({"name": " ", "steps": ["0s user:{me}"]}, "Enter a name"),
    ({"name": "x" * 300, "steps": ["0s user:{me}"]}, "at most 255 characters"),
    ({"name": "Night", "steps": ["0s user:{me}"], "repeats": 10}, "`repeats` must be at most 9"),
    ({"name": "Night", "steps": ["0s user:{me}"], "repeat_pause": "1s"}, "between 1 minute"),
    ({"name": "Night", "steps": [{"targets": [{"type": "team", "id": 1}]}]}, "steps.0"),
    (
        {"name": "Night", "steps": [{"targets": [{"type": "user", "id": 2**62}]}]},
        "not a member",
    ),
    ({"name": "Night", "steps": [{"targets": [{"type": "user"}]}]}, "is not a target"),
    ({"name": "Night", "steps": [7]}, "steps.0"),
)


@pytest.mark.long
def test_invalid_policies_are_rejected_with_a_reason(gatebell: LiveGatebell) -> None:
    _, call, _ = project_of(gatebell)
    me = alice(gatebell).username
    for body, problem in WRONG:
        steps = [
            each.format(me=me) if isinstance(each, str) else each for each in body.get("steps", [])
        ]
        sent = {**body, "steps": steps} if "steps" in body else body
        assert problem in call.refused("POST", "/escalation_policies", json=sent), body


@pytest.mark.long
def test_names_are_unique_and_targets_must_be_members(gatebell: LiveGatebell) -> None:
    _, call, bob = project_of(gatebell)
    body = {"name": "Night", "steps": [f"0s user:{bob.username}"]}
    call.done("POST", "/escalation_policies", status=201, json=body)
    refused = call.refused(
        "POST", "/escalation_policies", status=409, json={**body, "name": "NIGHT"}
    )
    assert refused.endswith("An escalation policy named NIGHT already exists here.")
    stranger = person_for(gatebell, None).username
    day = {"name": "Day", "steps": [f"0s user:{stranger}"]}
    assert "is not a member" in call.refused("POST", "/escalation_policies", json=day)
    # Only the policy that became the default last is the default.
    for name in ("Evening", "Day"):
        given = {**body, "name": name, "default": True}
        call.done("POST", "/escalation_policies", status=201, json=given)
    found = call.done("GET", "/escalation_policies")
    assert [each["name"] for each in found if each["default"]] == ["Day"]


@pytest.mark.long
def test_a_policy_of_another_project_is_not_found(gatebell: LiveGatebell) -> None:
    _, call, bob = project_of(gatebell)
    _, other, _ = project_of(gatebell)
    body = {"name": "Night", "steps": [f"0s user:{bob.username}"]}
    made = call.done("POST", "/escalation_policies", status=201, json=body)
    for method in ("GET", "PUT", "DELETE"):
        other.refused(method, f"/escalation_policies/{made['id']}", status=404)
    route = {"name": "Route", "escalation_policy_id": made["id"]}
    refused = other.refused("POST", "/alert_routes", json=route)
    number = made["id"]
    assert f'Escalation policy "{number}" not found here' in refused


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_the_command_line_creates_policies_and_routes(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    me = alice(gatebell).username
    steps = ("--step", f"0s user:{me}", "--step", f"5m user:{bob.username}, user:{me}")
    made = gatebell.cli("escalations", "create", path, "--name", "Night", *steps, "--default")
    assert made == call.done("GET", f"/escalation_policies/{made['id']}")
    assert made["default"] is True
    assert gatebell.cli("escalations", "list", path) == {"escalation_policies": [made], "total": 1}
    assert gatebell.cli("escalations", "show", path, "night") == made
    conditions = ("--severity", "critical", "--environment", "prod*", "--matcher", 'team="db"')
    route = gatebell.cli(
        "alert-routes", "create", path, "--name", "Db", "--policy", "Night", *conditions
    )
    assert route == call.done("GET", f"/alert_routes/{route['id']}")
    assert (route["severities"], route["labels"]) == (["critical"], ['team="db"'])
    assert route["escalation_policy_id"] == made["id"]
    done = gatebell.run_cli("escalations", "delete", path, "Night")
    assert "The route Db uses this policy." in done.stderr
    gatebell.cli("alert-routes", "delete", path, str(route["id"]))
    gatebell.cli("escalations", "delete", path, "Night")
    assert gatebell.cli("escalations", "list", path) == {"escalation_policies": [], "total": 0}


@pytest.mark.long
def test_a_schedule_used_by_a_policy_cannot_be_deleted(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    made = gatebell.cli(
        *("schedules", "create", path, "--name", "primary", "--time-zone", "UTC"),
        *("--rotation", f"weekly {bob.username} mon 09:00"),
    )
    body = {"name": "Night", "steps": ["0s schedule:Primary"]}
    policy = call.done("POST", "/escalation_policies", status=201, json=body)
    assert policy["summary"] == "Immediately: the people on call in primary. No repeats."
    at = f"/on_call/schedules/{made['id']}"
    problem = (
        "The escalation policy Night pages this schedule. Remove the schedule from the policy "
        "first."
    )
    assert problem in call.refused("DELETE", at, status=409)
    assert problem in gatebell.run_cli("schedules", "delete", path, "primary").stderr
    call.done("DELETE", f"/escalation_policies/{policy['id']}", status=204)
    call.done("DELETE", at, status=204)
