"""Tests of `GET /users/:id/projects`, which lists a user's projects for fellow members."""

import pytest

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import Person, make_user
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


@pytest.mark.long
def test_owned_projects_are_listed_for_members_and_administrators(gatebell: LiveGatebell) -> None:
    owner, member, stranger = (make_user(gatebell) for _ in range(3))
    tokens = {
        each: make_token(gatebell, each)
        for each in (owner, member, stranger, get_shared_administrator(gatebell))
    }
    scripts = {each: Api(gatebell, token.clear) for each, token in tokens.items()}
    group, other = (new_group(scripts[each]) for each in (owner, stranger))
    shop, blog = (
        made(
            scripts[owner].send_request(
                "POST",
                "/projects",
                json={"path": path, "namespace_id": group["id"], "visibility": "public"},
            )
        )
        for path in ("shop", "blog")
    )
    body = {"path": "else", "namespace_id": other["id"]}
    elsewhere = made(scripts[stranger].send_request("POST", "/projects", json=body))
    give_role(gatebell, elsewhere["path_with_namespace"], owner, Role.MAINTAINER)
    give_role(gatebell, shop["path_with_namespace"], member, Role.GUEST)

    def found(person: Person, user: object, query: str = "") -> list[int]:
        answer = scripts[person].send_request("GET", f"/users/{user}/projects?sort=asc{query}")
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()]

    both, owner_id = [shop["id"], blog["id"]], tokens[owner].user_id
    assert found(owner, owner_id) == found(owner, owner.username.upper()) == both
    assert found(get_shared_administrator(gatebell), owner_id) == both
    assert found(member, owner_id) == [shop["id"]]
    # Only members can see the owner of a public project.
    assert found(stranger, owner_id) == []
    assert found(owner, owner_id, "&search=blog&simple=true") == [blog["id"]]
    assert found(owner, tokens[stranger].user_id) == [elsewhere["id"]]
    for user in (0, 2**62, 2**64, "nobody-of-this-name", owner.email, "a%00b"):
        assert scripts[member].send_request("GET", f"/users/{user}/projects").status_code == 404
    url = f"{gatebell.url}/api/v4/users/{owner_id}/projects"
    assert machine(gatebell).get(url).status_code == 401


@pytest.mark.spec("M2")
def test_the_release_schedule_also_removes_fields_of_this_list(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    token = make_token(gatebell, person)
    script = Api(gatebell, token.clear)
    body = {"path": "shop", "namespace_id": new_group(script)["id"]}
    made(script.send_request("POST", "/projects", json=body))
    seen = {}
    for release in ("15.11", "16.0"):
        headers = {"Platform-Release": release}
        (project,) = script.send_request(
            "GET", f"/users/{token.user_id}/projects", headers=headers
        ).json()
        seen[release] = "operations_access_level" in project
    assert seen == {"15.11": True, "16.0": False}
