"""Tests of projects in the API: lists, creation and settings."""

from typing import Any
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import Person, make_project, make_user, unique
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

FIELDS = {
    *("id", "name", "name_with_namespace", "path", "path_with_namespace", "description"),
    *("created_at", "default_branch", "http_url_to_repo", "ssh_url_to_repo", "web_url"),
    *("namespace", "avatar_url", "last_activity_at"),
}
MORE = {
    *("visibility", "archived", "empty_repo", "permissions", "_links", "releases_access_level"),
    *("environments_access_level", "feature_flags_access_level", "infrastructure_access_level"),
    *("monitor_access_level", "shared_with_groups"),
}


def script_of(gatebell: LiveGatebell, person: Person | None = None) -> Api:
    return Api(gatebell, make_token(gatebell, person or make_user(gatebell)).clear)


def path_of(project: str) -> str:
    return f"/projects/{quote(project, safe='')}"


def made(answer: requests.Response, status: int = 201) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def new_group(script: Api, **more: Any) -> dict[str, Any]:
    name = unique("acme")
    return made(script.send_request("POST", "/groups", json={"name": name, "path": name, **more}))


@pytest.mark.both_databases
def test_a_project_is_created_read_and_changed(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    body = {"name": "Web shop", "namespace_id": group["id"], "description": "Sells things"}
    project = made(script.send_request("POST", "/projects", json=body))
    path = f"{group['full_path']}/web-shop"
    assert set(project) == FIELDS | MORE
    assert project["path_with_namespace"] == path
    assert project["name_with_namespace"] == f"{group['name']} / Web shop"
    assert project["web_url"] == f"{gatebell.url}/{path}"
    assert project["http_url_to_repo"] == f"{gatebell.url}/{path}.git"
    assert project["namespace"]["id"] == group["id"]
    assert project["permissions"] == {
        "project_access": {"access_level": 50},
        "group_access": {"access_level": 50},
    }
    assert (project["visibility"], project["archived"], project["empty_repo"]) == (
        "private",
        False,
        True,
    )
    for reference in (str(project["id"]), quote(path, safe="")):
        assert made(script.send_request("GET", f"/projects/{reference}"), 200) == project
    changes = {"name": "Shop", "visibility": "public", "monitor_access_level": "private"}
    changed = made(script.send_request("PUT", path_of(path), json=changes), 200)
    assert {**project, **changes} | {"name_with_namespace": f"{group['name']} / Shop"} == changed
    assert made(script.send_request("PUT", path_of(path), json={}), 200) == changed
    assert made(script.send_request("PUT", path_of(path), json=changes), 200) == changed
    kinds = [each.kind for each in list_events_with_subject(gatebell, path)][::-1]
    assert kinds == ["project.created", "project.changed"]


NO_PROJECTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": "x", "namespace_id": "acme"}, "namespace_id"),
    ({}, "path"),
    ({"name": "…"}, "path"),
    ({"path": "a/b"}, "path"),
    ({"path": "-a"}, "path"),
    ({"path": "x.git"}, "path"),
    ({"path": "x", "name": "a\nb"}, "name"),
    ({"path": "x", "visibility": "secret"}, "visibility"),
    ({"path": "x", "monitor_access_level": "public"}, "monitor_access_level"),
    ({"path": "taken"}, "path"),
    ({"path": "TAKEN"}, "path"),
)


@pytest.mark.long
def test_an_invalid_project_is_rejected_with_the_field(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = {"namespace_id": new_group(script)["id"]}
    made(script.send_request("POST", "/projects", json={"path": "taken", **group}))
    for body, field in NO_PROJECTS:
        answer = script.send_request("POST", "/projects", json={**group, **body})
        assert answer.status_code == 400, answer.text
        assert [each["field"] for each in answer.json()["errors"]] == [field]
    nowhere = {"path": "x", "namespace_id": 2**62}
    assert script.send_request("POST", "/projects", json=nowhere).status_code == 404


def test_projects_can_be_created_by_maintainers_of_the_group(gatebell: LiveGatebell) -> None:
    owner, other = make_user(gatebell), make_user(gatebell)
    group = new_group(script_of(gatebell, owner))
    script = script_of(gatebell, other)
    body = {"name": "shop", "namespace_id": group["id"]}
    assert script.send_request("POST", "/projects", json=body).status_code == 404
    give_role(gatebell, group["full_path"], other, Role.DEVELOPER)
    assert script.send_request("POST", "/projects", json=body).status_code == 403
    give_role(gatebell, group["full_path"], other, Role.MAINTAINER)
    project = made(script.send_request("POST", "/projects", json=body))
    assert project["permissions"] == {
        "project_access": {"access_level": 50},
        "group_access": {"access_level": 40},
    }


@pytest.mark.long
@pytest.mark.both_databases
def test_the_list_of_projects_depends_on_the_caller_and_the_filters(gatebell: LiveGatebell) -> None:
    owner, guest = make_user(gatebell), make_user(gatebell)
    script = script_of(gatebell, owner)
    word = unique("list")
    group = new_group(script, description=word)
    below = new_group(script, parent_id=group["id"])
    ids = {}
    for name, visibility, holder in (
        ("b", "private", group),
        ("a", "internal", below),
        ("c", "public", below),
    ):
        body = {"name": f"{word}{name}", "namespace_id": holder["id"], "visibility": visibility}
        ids[name] = made(script.send_request("POST", "/projects", json=body))["id"]

    def listed(of: Api, **query: Any) -> list[str]:
        answer = of.send_request("GET", "/projects", params={"search": word.upper(), **query})
        assert answer.status_code == 200, answer.text
        return [each["name"].removeprefix(word) for each in answer.json()]

    assert listed(script) == ["c", "a", "b"]
    assert listed(script, order_by="name", sort="asc") == ["a", "b", "c"]
    assert listed(script, order_by="path") == ["b", "c", "a"]
    assert listed(script, owned="true", visibility="internal") == ["a"]
    assert listed(script, id_after=ids["b"], id_before=ids["c"]) == ["a"]
    assert listed(script, archived="true") == []
    reader = script_of(gatebell, guest)
    assert listed(reader) == ["c", "a"]
    assert listed(reader, membership="true") == []
    give_role(gatebell, group["full_path"], guest, Role.REPORTER)
    assert listed(reader, membership="true") == ["c", "a", "b"]
    assert listed(reader, min_access_level=20) == ["c", "a", "b"]
    assert listed(reader, min_access_level=30) == []
    assert listed(reader, owned="true") == []
    (simple,) = reader.send_request(
        "GET", "/projects", params={"search": f"{word}a", "simple": "true"}
    ).json()
    assert set(simple) == FIELDS
    in_group = f"/groups/{group['id']}/projects"
    found = [each["id"] for each in reader.send_request("GET", in_group).json()]
    assert found == [ids["b"]]
    found = [
        each["id"]
        for each in reader.send_request(
            "GET", f"{in_group}?include_subgroups=true&order_by=id"
        ).json()
    ]
    assert found == [ids["c"], ids["a"], ids["b"]]


def test_only_public_projects_are_visible_without_a_token(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    paths = {
        visibility: make_project(gatebell, owner, visibility=visibility)
        for visibility in ("private", "internal", "public")
    }

    def get(path: str) -> requests.Response:
        return machine(gatebell).get(f"{gatebell.url}/api/v4{path}")

    assert get(path_of(paths["public"])).json()["permissions"] == {
        "project_access": None,
        "group_access": None,
    }
    for hidden in ("private", "internal"):
        assert get(path_of(paths[hidden])).status_code == 404
        group = paths[hidden].partition("/")[0]
        assert get(f"/groups/{group}").status_code == 404
    assert get(f"/groups/{paths['public'].partition('/')[0]}").json()["visibility"] == "public"
    listed = get("/projects?per_page=100&order_by=id").json()
    assert {each["visibility"] for each in listed} == {"public"}
    assert paths["public"] in {each["path_with_namespace"] for each in listed}


@pytest.mark.long
@pytest.mark.both_databases
def test_the_list_of_projects_supports_offset_and_keyset_pagination(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    script = script_of(gatebell, owner)
    group = new_group(script)
    for name in "abcde":
        made(
            script.send_request(
                "POST", "/projects", json={"name": name, "namespace_id": group["id"]}
            )
        )
    first = script.send_request(
        "GET", "/projects?owned=true&order_by=name&sort=asc&per_page=2&page=3"
    )
    assert [each["name"] for each in first.json()] == ["e"]
    assert (first.headers["X-Total"], first.headers["X-Next-Page"]) == ("5", "")
    names, url = [], "/projects?owned=true&pagination=keyset&order_by=id&sort=asc&per_page=2"
    while url:
        answer = script.send_request("GET", url)
        assert "X-Total" not in answer.headers
        names += [each["name"] for each in answer.json()]
        url = answer.links.get("next", {}).get("url", "").partition("/api/v4")[2]
    assert names == list("abcde")


def test_the_current_path_and_name_can_be_sent_again(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project = make_project(gatebell, owner)
    script = script_of(gatebell, owner)
    same = script.send_request("PUT", path_of(project), json={"path": "shop", "name": "Shop"})
    assert made(same, 200)["name"] == "Shop"
