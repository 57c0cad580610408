"""Tests of other requests by GitLab clients: namespaces, SSH keys and GraphQL."""

from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group, script_of
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_user
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell


def names(script: Api, query: str = "") -> list[str]:
    answer = script.send_request("GET", f"/namespaces{query}")
    assert answer.status_code == 200, answer.text
    return [each["full_path"] for each in answer.json()]


@pytest.mark.long
@pytest.mark.both_databases
def test_namespaces_are_the_groups_of_a_member(gatebell: LiveGatebell) -> None:
    owner, member, stranger = (make_user(gatebell) for _ in range(3))
    script = script_of(gatebell, owner)
    group = new_group(script)
    body = {"name": "Below", "path": "below", "parent_id": group["id"]}
    below = made(script.send_request("POST", "/groups", json=body))
    give_role(gatebell, below["full_path"], member, Role.DEVELOPER)
    assert names(script) == sorted([group["full_path"], below["full_path"]])
    assert names(script, "?top_level_only=true") == [group["full_path"]]
    assert names(script, f"?search={group['path'].upper()}") == names(script)
    assert names(script, "?search=below") == [below["full_path"]]
    assert names(script_of(gatebell, member)) == [below["full_path"]]
    assert names(script_of(gatebell, member), "?owned_only=true") == []
    visible = {"name": "Open", "namespace_id": new_group(script)["id"], "visibility": "public"}
    seen = made(script.send_request("POST", "/projects", json=visible))["namespace"]["id"]
    assert (
        script_of(gatebell, stranger).send_request("GET", f"/namespaces/{seen}").status_code == 200
    )
    assert names(script_of(gatebell, stranger)) == []
    assert below["full_path"] in names(
        script_of(gatebell, get_shared_administrator(gatebell)), "?search=below"
    )


def test_a_namespace_looks_the_same_as_in_its_project(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    above = new_group(script)
    body = {"name": "Below", "path": "below", "parent_id": above["id"]}
    group = made(script.send_request("POST", "/groups", json=body))
    body = {"name": "Shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    for reference in (str(group["id"]), quote(group["full_path"], safe="")):
        shown = made(script.send_request("GET", f"/namespaces/{reference}"), 200)
        assert shown == project["namespace"]
    (listed,) = [
        each
        for each in script.send_request("GET", "/namespaces").json()
        if each["id"] == group["id"]
    ]
    assert listed == project["namespace"]


def test_invisible_namespaces_are_not_found(gatebell: LiveGatebell) -> None:
    group = new_group(script_of(gatebell))
    stranger = script_of(gatebell, make_user(gatebell))
    assert stranger.send_request("GET", f"/namespaces/{group['id']}").status_code == 404
    assert requests.get(f"{gatebell.url}/api/v4/namespaces", timeout=10).status_code == 401


def test_the_list_of_namespaces_has_pages_and_ignores_unknown_parameters(
    gatebell: LiveGatebell,
) -> None:
    script = script_of(gatebell, make_user(gatebell))
    made_groups = {new_group(script)["full_path"] for _ in range(3)}
    pages = [
        script.send_request("GET", f"/namespaces?per_page=2&page={number}") for number in (1, 2)
    ]
    assert {each["full_path"] for page in pages for each in page.json()} == made_groups
    assert pages[0].headers["X-Total"] == "3"
    answer = script.send_request("GET", "/namespaces?requested_hosted_plan=x&full_path_search=true")
    assert answer.status_code == 200
    assert answer.headers["Gatebell-Ignored-Parameters"] == "requested_hosted_plan"


def test_the_list_of_ssh_keys_is_empty(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, person, scopes="read_user").clear)
    answer = script.send_request("GET", "/user/keys?per_page=5")
    assert (answer.status_code, answer.json()) == (200, [])
    assert answer.headers["X-Total"] == "0"
    assert script.send_request("POST", "/user/keys", json={"key": "x"}).status_code in {404, 405}


def test_graphql_returns_an_error_with_an_alternative(gatebell: LiveGatebell) -> None:
    query = {"query": "{ currentUser { username } }"}
    headers = {"Origin": "https://elsewhere.example"}
    address = f"{gatebell.url}/api/graphql"
    assert requests.get(address, timeout=10).status_code == 404
    answer = requests.post(address, json=query, headers=headers, timeout=10)
    assert answer.status_code == 404
    (error,) = answer.json()["errors"]
    assert f"{gatebell.url}/api/v4." in error["message"]
    differences = error["message"].partition(" See ")[2].split()[0]
    assert "GraphQL" in requests.get(differences, timeout=10).text
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
