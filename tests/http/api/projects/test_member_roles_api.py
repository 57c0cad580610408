"""Tests of `/api/v4/member_roles`, and of the permissions that custom roles add."""

from typing import Any
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import MINIMUM_ROLES, Ability, Role
from domain.projects.member_roles import MAX_BASE_ROLE
from tests.support.accounts.administration import find_last_event, get_shared_administrator
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, make_project, make_user, open_browser, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.one_database("postgres"), pytest.mark.spec("G6")]


def roles(gatebell: LiveGatebell, *, scopes: str = "api") -> ApiCaller:
    return api_caller(gatebell, get_shared_administrator(gatebell), "/member_roles", scopes=scopes)


def make_role(gatebell: LiveGatebell, **body: Any) -> dict[str, Any]:
    sent = {"name": unique("Watcher"), "base_access_level": 10, **body}
    made = roles(gatebell).done("POST", json=sent, status=201)
    assert isinstance(made, dict)
    return made


@pytest.mark.both_databases
def test_a_member_role_is_created_listed_and_deleted(gatebell: LiveGatebell) -> None:
    made = make_role(gatebell, description="Looks on", read_alerts=True)
    assert made == {
        "id": made["id"],
        "name": made["name"],
        "description": "Looks on",
        "group_id": None,
        "base_access_level": 10,
        "read_code": False,
        "read_alerts": True,
        "admin_alerts": False,
        "read_environments": False,
        "admin_environments": False,
        "admin_integrations": False,
    }
    event = find_last_event(gatebell, made["name"])
    assert event.kind == "member_role.created"
    assert event.details["permissions"] == "read_alerts"
    assert made in roles(gatebell, scopes="read_api").done("GET", "?per_page=100")

    assert roles(gatebell)("DELETE", f"/{made['id']}").status_code == 204
    assert find_last_event(gatebell, made["name"]).kind == "member_role.removed"
    roles(gatebell).refused("DELETE", f"/{made['id']}", status=404)
    assert made not in roles(gatebell).done("GET", "?per_page=100")


def test_each_ability_has_a_boolean_and_maintainers_have_all_abilities(
    gatebell: LiveGatebell,
) -> None:
    made = make_role(gatebell, **{each.value: True for each in Ability})
    assert {name for name, value in made.items() if value is True} == set(Ability)
    # The permission to change something includes the permission to see it.
    some = make_role(gatebell, admin_alerts=True, admin_environments=True)
    assert (some["read_alerts"], some["read_environments"]) == (True, True)
    # Users who manage members can therefore give only abilities that they have.
    assert max(MINIMUM_ROLES.values()) == MAX_BASE_ROLE == Role.MAINTAINER
    assert set(MINIMUM_ROLES) == set(Ability)


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "name"),
    ({"name": "x"}, "base_access_level"),
    ({"name": "", "base_access_level": 10}, "name"),
    ({"name": "a\nb", "base_access_level": 10}, "name"),
    ({"name": "x" * 256, "base_access_level": 10}, "name"),
    ({"name": "x", "base_access_level": 50}, "base_access_level"),
    ({"name": "x", "base_access_level": 11}, "base_access_level"),
    ({"name": "x", "base_access_level": "high"}, "base_access_level"),
    ({"name": "x", "base_access_level": 10, "read_alerts": "perhaps"}, "read_alerts"),
    ({"name": "x", "base_access_level": 10, "description": "x" * 1001}, "description"),
)


def test_an_invalid_member_role_is_rejected_with_the_parameter(gatebell: LiveGatebell) -> None:
    caller = roles(gatebell)
    for body, named in WRONG:
        assert named in caller.refused("POST", json=body), body
    again = {"name": make_role(gatebell)["name"].upper(), "base_access_level": 20}
    assert "has already been taken" in str(caller.refused("POST", json=again))


def member_with(gatebell: LiveGatebell, namespace: str, **abilities: bool) -> Person:
    """Return a new guest with a custom role."""
    person = make_user(gatebell, name="watcher")
    give_role(gatebell, namespace, person, Role.GUEST)
    made = make_role(gatebell, **abilities)
    arguments = ("give-member-role", namespace, person.username, str(made["id"]))
    assert gatebell.cli("members", *arguments)["member_role"]["name"] == made["name"]
    return person


def project_api(gatebell: LiveGatebell, person: Person, project: str) -> ApiCaller:
    return api_caller(gatebell, person, f"/projects/{quote(project, safe='')}")


def statuses(api: ApiCaller) -> dict[str, int]:
    """Return the status of a request for each ability."""
    asked = {
        "read_alerts": ("GET", "/alert_management_alerts/1", {}),
        "admin_alerts": ("PUT", "/alert_management_alerts/1", {"status": "acknowledged"}),
        "read_environments": ("GET", "/environments", {}),
        "admin_environments": ("POST", "/environments", {"name": unique("e")}),
        "admin_integrations": ("GET", "/alert_management_integrations", {}),
    }
    return {
        name: api(method, path, json=body).status_code if body else api(method, path).status_code
        for name, (method, path, body) in asked.items()
    }


@pytest.mark.long
@pytest.mark.both_databases
def test_a_member_gains_exactly_the_abilities_of_the_role(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Fire")
    refused = dict.fromkeys(set(Ability) - {Ability.READ_CODE}, 403)
    good = dict.fromkeys(Ability, 200) | {Ability.ADMIN_ENVIRONMENTS: 201}
    for gained in (
        ("read_alerts",),
        ("read_alerts", "admin_alerts"),
        ("read_environments",),
        ("read_environments", "admin_environments"),
        ("admin_integrations",),
    ):
        person = member_with(gatebell, endpoint.project, **{gained[-1]: True})
        found = statuses(project_api(gatebell, person, endpoint.project))
        assert found == refused | {Ability(name): good[Ability(name)] for name in gained}


@pytest.mark.spec("G2")
def test_a_guest_with_read_code_can_clone_a_private_project(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    url = f"{gatebell.url}/{endpoint.project}.git/info/refs?service=git-upload-pack"
    for ability, status in (("read_alerts", 403), ("read_code", 200)):
        person = member_with(gatebell, endpoint.project, **{ability: True})
        token = make_token(gatebell, person, scopes="read_repository").clear
        assert requests.get(url, auth=("x", token), timeout=30).status_code == status


def test_a_member_role_applies_below_a_group_and_ends_with_the_base_role(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Fire")
    group = endpoint.project.rpartition("/")[0]
    person = member_with(gatebell, group, read_alerts=True)
    api = project_api(gatebell, person, endpoint.project)
    assert api("GET", "/alert_management_alerts/1").status_code == 200

    # The custom role ends with its base role, and does not return with it.
    give_role(gatebell, group, person, Role.REPORTER)
    assert api("GET", "/alert_management_alerts/1").status_code == 403
    give_role(gatebell, group, person, Role.GUEST)
    assert api("GET", "/alert_management_alerts/1").status_code == 403


@pytest.mark.long
@pytest.mark.both_databases
def test_the_alerts_of_a_group_can_be_listed_with_a_custom_role(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Fire")
    group = endpoint.project.rpartition("/")[0]
    for namespace, ability, status in (
        (group, "read_alerts", 200),
        (group, "read_environments", 403),
        (endpoint.project, "read_alerts", 403),  # A role in a project gives no access to the group.
    ):
        person = member_with(gatebell, namespace, **{ability: True})
        api = api_caller(gatebell, person, "")
        listed = api("GET", f"/groups/{group}/alert_management_alerts")
        assert listed.status_code == status, (namespace, ability, listed.text)
        if status == 200:
            assert [each["title"] for each in listed.json()] == ["Fire"]
            give_role(gatebell, group, person, Role.REPORTER)  # This ends the custom role.
            refused = api("GET", f"/groups/{group}/alert_management_alerts")
            assert refused.status_code == 403


@pytest.mark.long
def test_an_assigned_member_role_cannot_be_deleted(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Fire")
    person = member_with(gatebell, endpoint.project, read_alerts=True)
    api = project_api(gatebell, person, endpoint.project)
    custom = next(
        each
        for each in reversed(roles(gatebell).done("GET", "?per_page=100"))
        if each["read_alerts"]
    )
    refused = roles(gatebell).refused("DELETE", f"/{custom['id']}", status=409)
    assert "Give them another role first" in refused
    assert api("GET", "/alert_management_alerts/1").status_code == 200

    gatebell.cli("members", "give-member-role", endpoint.project, person.username, "0")
    assert api("GET", "/alert_management_alerts/1").status_code == 403
    assert roles(gatebell)("DELETE", f"/{custom['id']}").status_code == 204


@pytest.mark.long
def test_pages_show_only_the_abilities_of_a_custom_role(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Fire")
    project = f"{gatebell.url}/{endpoint.project}"
    watcher = open_browser(gatebell, member_with(gatebell, endpoint.project, read_alerts=True))
    overview = watcher.get(project).text
    assert "Fire" in overview
    assert "/-/settings/integrations" not in overview
    assert "/-/environments" not in overview
    alert = watcher.get(f"{project}/-/alerts/1")
    assert alert.status_code == 200
    assert 'action="/' not in alert.text.partition("<main")[2].partition("</main")[0]
    assert watcher.get(f"{project}/-/alerts").status_code == 200
    assert watcher.get(f"{project}/-/environments").status_code == 403

    plumber = open_browser(
        gatebell, member_with(gatebell, endpoint.project, admin_integrations=True)
    )
    integrations = plumber.get(f"{project}/-/settings/integrations")
    assert integrations.status_code == 200
    assert "/configure" in integrations.text
    assert plumber.get(f"{project}/-/alerts").status_code == 403
    assert (
        "Watcher"
        in open_browser(gatebell, get_shared_administrator(gatebell))
        .get(f"{project}/-/settings/members")
        .text
    )


@pytest.mark.both_databases
@pytest.mark.spec("M2")
def test_before_17_0_member_roles_of_a_group_are_managed_by_its_owners(
    gatebell: LiveGatebell,
) -> None:
    owner, maintainer, member = (make_user(gatebell) for _ in range(3))
    inside, outside = (make_project(gatebell, owner) for _ in range(2))
    group = inside.partition("/")[0]
    give_role(gatebell, group, maintainer, Role.MAINTAINER)
    for place in (group, outside):
        give_role(gatebell, place, member, Role.GUEST)
    earlier = {"Platform-Release": "16.11"}
    at = f"/groups/{group}/member_roles"
    api, other = api_caller(gatebell, owner), api_caller(gatebell, maintainer)
    body = {"name": unique("Watcher"), "base_access_level": 10, "read_alerts": True}

    assert other("POST", at, json=body, headers=earlier).status_code == 403
    made = api.done("POST", at, json=body, headers=earlier, status=201)
    own = api.done("GET", f"/groups/{group}")["id"]
    assert made["group_id"] == own
    assert api.done("GET", at, headers=earlier) == [made]
    elsewhere = f"/groups/{outside.partition('/')[0]}/member_roles"
    assert api.done("GET", elsewhere, headers=earlier) == []
    assert made in roles(gatebell).done("GET", "?per_page=100")
    event = find_last_event(gatebell, made["name"])
    assert (event.kind, event.group_id) == ("member_role.created", own)

    # Only members of the group, its subgroups and its projects can have the role.
    number = make_token(gatebell, member).user_id
    chosen = {"member_role_id": made["id"]}
    api.done("PUT", f"/groups/{group}/members/{number}", json=chosen)
    refused = api("PUT", f"/projects/{quote(outside, safe='')}/members/{number}", json=chosen)
    assert (refused.status_code, "member_role_id" in refused.text) == (400, True)
    assert api("DELETE", f"{elsewhere}/{made['id']}", headers=earlier).status_code == 404
    assert api("DELETE", f"{at}/{made['id']}", headers=earlier).status_code == 409
    api.done("PUT", f"/groups/{group}/members/{number}", json={"member_role_id": None})
    assert api("DELETE", f"{at}/{made['id']}", headers=earlier).status_code == 204
    assert api("GET", at, headers={"Platform-Release": "17.0"}).status_code == 404
