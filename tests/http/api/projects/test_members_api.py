"""Tests of members of projects and groups in the API."""

from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from domain.access.roles import Role
from models import Member
from tests.http.api.projects.test_projects_api import made, path_of, script_of
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    now,
    unique,
)
from tests.support.accounts.team import find_member_id, give_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def user_id(gatebell: LiveGatebell, person: Person) -> int:
    return int(script_of(gatebell, person).send_request("GET", "/user").json()["id"])


def in_days(days: int) -> str:
    return (now().date() + timedelta(days=days)).isoformat()


@pytest.mark.both_databases
@pytest.mark.spec("G6")
def test_a_custom_role_can_be_given_to_a_member_and_removed(gatebell: LiveGatebell) -> None:
    owner, bob = make_user(gatebell), make_user(gatebell, name="bob")
    project = make_project(gatebell, owner)
    administrator = script_of(gatebell, get_shared_administrator(gatebell))
    role = made(
        administrator.send_request(
            "POST",
            "/member_roles",
            json={"name": unique("On-call"), "base_access_level": 10, "read_alerts": True},
        )
    )
    url, script, number = (
        f"{path_of(project)}/members",
        script_of(gatebell, owner),
        user_id(gatebell, bob),
    )
    body = {"user_id": number, "access_level": 10, "member_role_id": role["id"]}
    member = made(script.send_request("POST", url, json=body))
    assert member["member_role"] == {"id": role["id"], "name": role["name"]}
    alerts = f"{path_of(project)}/alert_management_alerts"
    bobs = script_of(gatebell, bob)
    assert bobs.send_request("GET", alerts).status_code == 200
    one = f"{url}/{number}"
    unknown = script.send_request("PUT", one, json={"member_role_id": 2**40})
    assert (unknown.status_code, unknown.json()["errors"][0]["field"]) == (400, "member_role_id")
    refused = script.send_request(
        "PUT", one, json={"access_level": 30, "member_role_id": role["id"]}
    )
    assert refused.status_code == 400
    assert made(script.send_request("GET", one), 200) == member
    without = made(script.send_request("PUT", one, json={"member_role_id": None}), 200)
    assert "member_role" not in without
    assert {**without, "member_role": member["member_role"]} == member
    assert bobs.send_request("GET", alerts).status_code == 403


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["projects", "groups"])
def test_a_member_is_added_changed_and_removed(gatebell: LiveGatebell, kind: str) -> None:
    owner, bob = make_user(gatebell), make_user(gatebell, name="bob")
    project = make_project(gatebell, owner)
    subject = project if kind == "projects" else project.partition("/")[0]
    url = f"{path_of(project)}/members" if kind == "projects" else f"/groups/{subject}/members"
    script, number = script_of(gatebell, owner), user_id(gatebell, bob)
    body = {"user_id": number, "access_level": 30, "expires_at": in_days(9)}
    member = made(script.send_request("POST", url, json=body))
    assert member == {
        "id": number,
        "username": bob.username,
        "name": member["name"],
        "state": "active",
        "avatar_url": member["avatar_url"],
        "web_url": f"{gatebell.url}/-/users/{bob.username}",
        "access_level": 30,
        "created_at": member["created_at"],
        "expires_at": in_days(9),
        "membership_state": "active",
    }
    assert script.send_request("POST", url, json=body).status_code == 409
    assert made(script.send_request("GET", f"{url}/{number}"), 200) == member
    changed = made(script.send_request("PUT", f"{url}/{number}", json={"access_level": 40}), 200)
    assert changed == {**member, "access_level": 40}
    lasting = made(script.send_request("PUT", f"{url}/{number}", json={"expires_at": None}), 200)
    assert lasting == {**changed, "expires_at": None}
    assert made(script.send_request("PUT", f"{url}/{number}", json={}), 200) == lasting
    assert script.send_request("DELETE", f"{url}/{number}").status_code == 204
    assert script.send_request("DELETE", f"{url}/{number}").status_code == 404
    kinds = [each.kind for each in list_events_with_subject(gatebell, subject)]
    assert kinds == ["member.removed", "member.changed", "member.changed", "member.added"]


NO_MEMBERS: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"access_level": 30}, 400, "user_id"),
    ({"username": "BOB"}, 400, "access_level"),
    ({"username": "BOB", "access_level": 31}, 400, "access_level"),
    ({"username": "BOB", "access_level": 30, "expires_at": in_days(0)}, 400, "expires_at"),
    ({"username": "BOB", "access_level": 30, "expires_at": "soon"}, 400, "expires_at"),
    ({"user_id": "x", "access_level": 30}, 400, "user_id"),
    ({"user_id": 2**62, "access_level": 30}, 404, ""),
    ({"username": "nobody-at-all", "access_level": 30}, 404, ""),
    ({"username": "bob@example.org", "access_level": 30}, 400, "user"),
    ({"username": "BOB", "access_level": 50}, 400, "role"),
)


def test_an_invalid_member_is_rejected_with_the_field(gatebell: LiveGatebell) -> None:
    maintainer, bob = make_user(gatebell), make_user(gatebell, name="bob")
    project = make_project(gatebell, make_user(gatebell))
    give_role(gatebell, project, maintainer, Role.MAINTAINER)
    script, url = script_of(gatebell, maintainer), f"{path_of(project)}/members"
    for body, status, field in NO_MEMBERS:
        given = {**body, "username": bob.username} if body.get("username") == "BOB" else body
        answer = script.send_request("POST", url, json=given)
        assert answer.status_code == status, answer.text
        if field:
            assert answer.json()["errors"][0]["field"].partition(".")[0] == field


def test_a_role_can_be_given_by_name_or_number(gatebell: LiveGatebell) -> None:
    owner, bob = make_user(gatebell), make_user(gatebell)
    script, url = script_of(gatebell, owner), f"{path_of(make_project(gatebell, owner))}/members"
    body = {"username": bob.username, "access_level": "reporter"}
    member = made(script.send_request("POST", url, json=body))
    assert member["access_level"] == 20
    changed = made(
        script.send_request("PUT", f"{url}/{member['id']}", json={"access_level": "30"}), 200
    )
    assert changed["access_level"] == 30
    refused = script.send_request("PUT", f"{url}/{member['id']}", json={"access_level": "king"})
    assert (refused.status_code, "is not a role" in refused.text) == (400, True)


@pytest.mark.long
def test_several_members_are_added_together_or_not_at_all(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    people = [make_user(gatebell) for _ in range(3)]
    script, url = script_of(gatebell, owner), f"{path_of(make_project(gatebell, owner))}/members"
    first, second, third = (user_id(gatebell, person) for person in people)
    body = {"user_id": f"{first},{second}", "access_level": 20}
    assert made(script.send_request("POST", url, json=body)) == {"status": "success"}
    body = {"user_id": [third, second], "access_level": 20}
    assert script.send_request("POST", url, json=body).status_code == 409
    listed = {each["id"] for each in script.send_request("GET", url).json()}
    assert {first, second} <= listed
    assert third not in listed
    wanted = script.send_request("GET", f"{url}?user_ids[]={first}&user_ids[]={third}")
    assert [each["id"] for each in wanted.json()] == [first]
    found = script.send_request("GET", url, params={"query": people[1].username.upper()})
    assert [each["id"] for each in found.json()] == [second]


@pytest.mark.long
def test_inherited_members_are_in_the_list_of_all_members(gatebell: LiveGatebell) -> None:
    owner, bob = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, owner)
    give_role(gatebell, project.partition("/")[0], bob, Role.MAINTAINER)
    script, url = script_of(gatebell, bob), f"{path_of(project)}/members"
    number = user_id(gatebell, bob)
    assert number not in {each["id"] for each in script.send_request("GET", url).json()}
    assert script.send_request("GET", f"{url}/{number}").status_code == 404
    everybody = script.send_request("GET", f"{url}/all")
    assert (everybody.headers["X-Total"], len(everybody.json())) == ("2", 2)
    assert made(script.send_request("GET", f"{url}/all/{number}"), 200)["access_level"] == 40
    made(script.send_request("POST", url, json={"user_id": number, "access_level": 20}))
    assert made(script.send_request("GET", f"{url}/{number}"), 200)["access_level"] == 20
    assert made(script.send_request("GET", f"{url}/all/{number}"), 200)["access_level"] == 40


@pytest.mark.long
@pytest.mark.both_databases
def test_an_expired_role_gives_no_access_and_is_pruned(gatebell: LiveGatebell) -> None:
    owner, bob = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, owner)
    mine, script = script_of(gatebell, owner), script_of(gatebell, bob)
    url, number = f"{path_of(project)}/members", user_id(gatebell, bob)
    body = {"user_id": number, "access_level": 30, "expires_at": in_days(1)}
    made(mine.send_request("POST", url, json=body))
    alerts = f"{path_of(project)}/alert_management_alerts"
    assert script.send_request("GET", alerts).status_code == 200
    end(gatebell, find_member_id(gatebell, project, bob), now().date())
    assert script.send_request("GET", alerts).status_code == 404
    assert script.send_request("GET", "/projects?membership=true").json() == []
    assert number not in {each["id"] for each in mine.send_request("GET", f"{url}/all").json()}
    assert made(mine.send_request("POST", url, json=body))["access_level"] == 30
    end(gatebell, find_member_id(gatebell, project, bob), now().date())
    gatebell.cli("prune")
    assert list_events_with_subject(gatebell, project)[0].kind == "member.expired"


def end(gatebell: LiveGatebell, number: int, day: date) -> None:
    with database_of(gatebell) as session:
        session.execute(update(Member).where(Member.id == number).values(expires_at=day))
