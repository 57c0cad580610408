"""Programs that were written for GitLab: their requests, and the fields that they read.

A server of the Model Context Protocol comes from npm, and clients in Ruby and Go come from Debian.
Backstage, Renovate and Argo CD are too large to run, so the requests are taken from their sources.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group
from tests.stories.debian_clients import run_go, run_ruby
from tests.stories.javascript import install, run_script
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_user, unique
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.spec("M1")]

FOLDER = Path(__file__).parents[1] / "gitlab_mcp"
FOLDER_OF_CLIENTS = Path(__file__).parents[1] / "gitlab_clients"


@pytest.fixture
def team(gatebell: LiveGatebell) -> dict[str, Any]:
    """Return a group with two projects and a subgroup, and the script of its owner."""
    owner, member = make_user(gatebell), make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, owner).clear)
    group = new_group(script)
    below = {"path": "eu", "parent_id": group["id"]}
    inner = made(script.send_request("POST", "/groups", json=below))
    name = unique("shop")
    places = ((group, name), (inner, f"{name}-eu"), (group, "blog"))
    projects = [
        made(
            script.send_request(
                "POST", "/projects", json={"path": path, "namespace_id": place["id"]}
            )
        )
        for place, path in places
    ]
    give_role(gatebell, group["full_path"], member, Role.DEVELOPER)
    return {
        "script": script,
        "group": group["full_path"],
        "id": group["id"],
        "name": name,
        "projects": projects,
        "usernames": {owner.username, member.username},
    }


def get(script: Api, path: str, **query: Any) -> requests.Response:
    answer = script.send_request("GET", path, params=query)
    assert answer.status_code == 200, answer.text
    return answer


def pages(script: Api, path: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Follow pages with the header X-Next-Page, as Backstage does."""
    page: str | None = None
    while page != "":
        answer = get(script, path, **query, **({"page": page} if page else {}))
        yield from answer.json()
        page = answer.headers["X-Next-Page"]


@pytest.mark.long
def test_an_assistant_finds_projects_with_the_schemas_of_the_server(
    gatebell: LiveGatebell, team: dict[str, Any]
) -> None:
    install(FOLDER)
    given = {"host": gatebell.url, "token": team["script"].token, "search": team["name"]}
    found = run_script(FOLDER, given)
    paths = {f"{team['group']}/{team['name']}", f"{team['group']}/eu/{team['name']}-eu"}
    assert (found["count"], set(found["paths"])) == (2, paths)


@pytest.mark.long
def test_backstage_reads_projects_users_groups_and_members(
    gatebell: LiveGatebell, team: dict[str, Any]
) -> None:
    script, group = team["script"], quote(team["group"], safe="")
    query: dict[str, Any] = {
        "archived": "false",
        "group": team["group"],
        "page": 1,
        "per_page": 1,
        "last_activity_after": "2020-01-01T00:00:00Z",
        "include_subgroups": "true",
    }
    query.pop("page")
    listed = list(pages(script, f"/groups/{group}/projects", query))
    assert {each["id"] for each in listed} == {each["id"] for each in team["projects"]}
    assert all(each["last_activity_at"] and each["default_branch"] for each in listed)
    everywhere = {"archived": "false", "membership": "true", "topics": "a,b", "per_page": 50}
    assert len(list(pages(script, "/projects", everywhere))) == 3

    all_groups = get(script, "/groups", per_page=100, min_access_level=10).json()
    assert team["id"] in {each["id"] for each in all_groups}
    assert get(script, f"/groups/{group}", with_projects="false").json()["full_path"]

    seats = {"active": "true", "show_seat_info": "true", "per_page": 100}
    members = list(pages(script, f"/groups/{group}/members/all", seats))
    assert {each["username"] for each in members} == team["usernames"]
    admin = Api(gatebell, make_token(gatebell, get_shared_administrator(gatebell)).clear)
    people = {
        "active": "true",
        "per_page": 100,
        "without_project_bots": "true",
        "exclude_internal": "true",
    }
    found = get(admin, "/users", **people).json()
    assert all(each["name"] and each["web_url"] and each["avatar_url"] for each in found)


@pytest.mark.long
def test_renovate_discovers_repositories(team: dict[str, Any]) -> None:
    script = team["script"]
    user, version = get(script, "/user").json(), get(script, "/version").json()
    assert (user["name"], user["email"], version["version"].count(".")) == (
        user["name"],
        user["email"],
        2,
    )
    query: dict[str, Any] = {
        "membership": "true",
        "per_page": 100,
        "with_merge_requests_enabled": "true",
        "min_access_level": 30,
        "archived": "false",
    }
    found = [each["path_with_namespace"] for each in get(script, "/projects", **query).json()]
    assert len(found) == 3
    inside = {**query, "with_shared": "false", "include_subgroups": "true"}
    group = quote(team["group"], safe="")
    assert len(get(script, f"/groups/{group}/projects", **inside).json()) == 3
    assert get(script, f"/groups/{group}/projects", **inside, topic="renovate").json() == []
    repository = get(script, f"/projects/{quote(found[0], safe='')}").json()
    assert (repository["archived"], repository["empty_repo"]) == (False, True)
    assert repository["http_url_to_repo"].endswith(".git")


def test_argo_cd_lists_the_repositories_of_a_group(
    gatebell: LiveGatebell, team: dict[str, Any]
) -> None:
    query: dict[str, Any] = {
        "include_subgroups": "true",
        "per_page": 100,
        "with_shared": "true",
        "topic": "",
        "page": 0,
    }
    url = f"{gatebell.url}/api/v4/groups/{quote(team['group'], safe='')}/projects"
    headers = {"PRIVATE-TOKEN": team["script"].token}
    answer = machine(gatebell).get(url, params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    assert int(answer.headers["X-Page"]) >= int(answer.headers["X-Total-Pages"])
    for each in answer.json():
        assert each["namespace"]["full_path"].startswith(team["group"])
        assert each["ssh_url_to_repo"]
        assert each["default_branch"] == "main"


@pytest.mark.long
def test_the_ruby_client_reads_groups_projects_and_members(
    gatebell: LiveGatebell, team: dict[str, Any]
) -> None:
    told = run_ruby(FOLDER_OF_CLIENTS / "story.rb", given_to_clients(gatebell, team))
    shop, blog = team["name"], "blog"
    assert set(told["groups"]) == {team["group"], f"{team['group']}/eu"}
    assert set(told["projects"]) == set(told["in_group"]) == {"shop", shop, f"{shop}-eu", blog}
    assert told["project"]
    counts = (told["members"], told["users"], told["environments"])
    assert (*counts, told["group"]) == (2, 1, 0, team["group"])
    assert "has already been taken" in told["taken"]


@pytest.mark.long
def test_the_go_client_reads_groups_projects_and_members(
    gatebell: LiveGatebell, team: dict[str, Any]
) -> None:
    told = run_go(FOLDER_OF_CLIENTS / "story.go", given_to_clients(gatebell, team))
    assert (told["taken"], "has already been taken" in told.pop("error")) == (True, True)
    assert all(url.startswith(gatebell.url) for url in told.pop("urls"))
    assert told.pop("own") in {f"user {each}/notes" for each in team["usernames"]}
    assert told == {
        "namespaces": 3,
        "shared": 20,
        "hooks": 0,
        "state": "stopped",
        "last": True,
        "projects": 4,
        "active": True,
        "branch": "main",
        "groups": 2,
        "stopped": 0,
        "members": 2,
        "picture": True,
        "users": 1,
        "statuses": 0,
        "taken": True,
    }


def given_to_clients(gatebell: LiveGatebell, team: dict[str, Any]) -> dict[str, str]:
    """Return the input of a program; its project is named shop."""
    script: Api = team["script"]
    made(
        script.send_request("POST", "/projects", json={"path": "shop", "namespace_id": team["id"]})
    )
    return {
        "host": gatebell.url,
        "token": script.token,
        "group": team["group"],
        "username": min(team["usernames"]),
    }
