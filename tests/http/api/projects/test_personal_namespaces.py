"""Tests of personal namespaces: projects without a group, until the account is deleted."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import requests

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group, path_of, script_of
from tests.support.accounts.administration import find_user_id, get_shared_administrator
from tests.support.accounts.people import make_user, signed_in, unique
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

TAKEN = {"path": ["has already been taken"]}


def administrator(gatebell: LiveGatebell) -> Api:
    return script_of(gatebell, get_shared_administrator(gatebell))


@pytest.mark.both_databases
def test_a_project_without_a_group_is_in_a_personal_namespace(gatebell: LiveGatebell) -> None:
    owner, stranger = make_user(gatebell), make_user(gatebell)
    script, name = script_of(gatebell, owner), owner.username
    first = made(script.send_request("POST", "/projects", json={"name": "Shop"}))
    assert first["path_with_namespace"] == f"{name}/shop"
    assert first["permissions"]["group_access"] == {"access_level": int(Role.OWNER)}
    space = first["namespace"]
    assert (space["kind"], space["full_path"], space["parent_id"]) == ("user", name, None)
    tool = {"name": "Tool", "namespace_id": space["id"]}
    second = made(script.send_request("POST", "/projects", json=tool))
    assert second["namespace"] == space
    assert made(script.send_request("GET", f"/namespaces/{name}"), 200) == space
    assert space in script.send_request("GET", "/namespaces").json()
    assert script.send_request("GET", f"/groups?search={name}").json() == []
    again = script.send_request("POST", "/projects", json={"name": "Shop"})
    assert (again.status_code, again.json()["message"]) == (400, TAKEN)
    other = script_of(gatebell, stranger)
    for reference in (name, str(space["id"])):
        assert other.send_request("GET", f"/namespaces/{reference}").status_code == 404
    theirs = {"name": "x", "namespace_id": space["id"]}
    assert other.send_request("POST", "/projects", json=theirs).status_code == 404


@pytest.mark.long
@pytest.mark.both_databases
def test_parallel_first_projects_of_a_user_are_all_created(gatebell: LiveGatebell) -> None:
    for _ in range(3):
        make = partial(make_project, script_of(gatebell, make_user(gatebell)))
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(make, range(4)))
        assert [answer.status_code for answer in answers] == [201] * 4
        assert len({answer.json()["namespace"]["id"] for answer in answers}) == 1


def make_project(script: Api, number: int) -> requests.Response:
    return Api(script.gatebell, script.token).send_request(
        "POST", "/projects", json={"name": f"p{number}"}
    )


def test_members_of_a_project_get_no_other_access_to_the_personal_namespace(
    gatebell: LiveGatebell,
) -> None:
    owner, member = make_user(gatebell), make_user(gatebell)
    script = script_of(gatebell, owner)
    shop = made(script.send_request("POST", "/projects", json={"name": "Shop"}))
    made(script.send_request("POST", "/projects", json={"name": "Diary"}))
    give_role(gatebell, shop["path_with_namespace"], member, Role.MAINTAINER)
    theirs = script_of(gatebell, member)
    seen: Any = made(theirs.send_request("GET", f"/groups/{owner.username}/projects"), 200)
    assert [each["path"] for each in seen] == ["shop"]
    into = {"name": "x", "namespace_id": shop["namespace"]["id"]}
    refused = theirs.send_request("POST", "/projects", json=into)
    assert refused.status_code == 403
    assert "personal namespace" in refused.text


@pytest.mark.parametrize("who", ["owner", "administrator"])
def test_a_personal_namespace_can_only_be_changed_through_the_account(
    gatebell: LiveGatebell, who: str
) -> None:
    owner = make_user(gatebell)
    own = script_of(gatebell, owner)
    space = made(own.send_request("POST", "/projects", json={"name": "Shop"}))["namespace"]
    script = own if who == "owner" else administrator(gatebell)
    group = f"/groups/{space['id']}"
    member = {"user_id": find_user_id(gatebell, make_user(gatebell)), "access_level": 30}
    invitation = {"email": "a@b.example", "access_level": 30}
    refused = [
        script.send_request("PUT", group, json={"path": "other"}),
        script.send_request("DELETE", group),
        script.send_request("POST", f"{group}/members", json=member),
        script.send_request("POST", f"{group}/invitations", json=invitation),
        script.send_request(
            "POST", "/groups", json={"name": "b", "path": "b", "parent_id": space["id"]}
        ),
        script.send_request(
            "POST", f"{group}/access_tokens", json={"name": "x", "scopes": ["api"]}
        ),
    ]
    for answer in refused:
        assert answer.status_code == 403, answer.text
        assert "is a personal namespace" in answer.text
    assert own.send_request("GET", path_of(f"{space['full_path']}/shop")).status_code == 200


@pytest.mark.both_databases
def test_projects_can_be_transferred_to_and_from_a_personal_namespace(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    script, name = script_of(gatebell, owner), owner.username
    group = new_group(script)
    made(
        script.send_request("POST", "/projects", json={"name": "Shop", "namespace_id": group["id"]})
    )
    there = path_of(f"{group['full_path']}/shop")
    moved = made(script.send_request("PUT", f"{there}/transfer", json={"namespace": name}), 200)
    assert moved["path_with_namespace"] == f"{name}/shop"
    back = made(
        script.send_request(
            "PUT", f"{path_of(f'{name}/shop')}/transfer", json={"namespace": group["id"]}
        ),
        200,
    )
    assert back["path_with_namespace"] == f"{group['full_path']}/shop"
    assert made(script.send_request("GET", there), 200)["id"] == moved["id"]


@pytest.mark.both_databases
def test_a_new_username_moves_the_projects_and_old_urls_redirect(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    script = script_of(gatebell, owner)
    shop = made(script.send_request("POST", "/projects", json={"name": "Shop"}))
    new = unique("renamed")
    boss, account = administrator(gatebell), f"/users/{find_user_id(gatebell, owner)}"
    made(boss.send_request("PUT", account, json={"username": new}), 200)
    after = made(script.send_request("GET", f"/projects/{shop['id']}"), 200)
    assert after["path_with_namespace"] == f"{new}/shop"
    assert after["namespace"]["name"] == new
    old = script.send_request("GET", path_of(shop["path_with_namespace"]), allow_redirects=False)
    assert old.status_code == 302
    made(boss.send_request("PUT", account, json={"username": owner.username}), 200)
    assert made(script.send_request("GET", f"/projects/{shop['id']}"), 200) == shop


def test_users_and_groups_share_one_set_of_names(gatebell: LiveGatebell) -> None:
    owner, other = make_user(gatebell), make_user(gatebell)
    script = script_of(gatebell, other)
    body = {"name": "x", "path": owner.username.upper()}
    squatted = script.send_request("POST", "/groups", json=body)
    assert (squatted.status_code, squatted.json()["message"]) == (400, TAKEN)
    group, boss = new_group(script), administrator(gatebell)
    new = {"username": group["path"], "email": f"{group['path']}@b.example", "name": "x"}
    account = boss.send_request("POST", "/users", json={**new, "force_random_password": True})
    assert account.status_code == 409, account.text
    named = boss.send_request(
        "PUT", f"/users/{find_user_id(gatebell, owner)}", json={"username": group["path"]}
    )
    assert named.status_code == 409
    below = {"name": "x", "path": owner.username, "parent_id": group["id"]}
    made(script.send_request("POST", "/groups", json=below))


def test_a_deleted_user_takes_the_projects_along(gatebell: LiveGatebell) -> None:
    owner, member = make_user(gatebell), make_user(gatebell)
    script = script_of(gatebell, owner)
    shop = made(
        script.send_request("POST", "/projects", json={"name": "Shop", "visibility": "public"})
    )
    give_role(gatebell, shop["path_with_namespace"], member, Role.DEVELOPER)
    number = find_user_id(gatebell, owner)
    page = signed_in(gatebell, get_shared_administrator(gatebell)).get(
        f"{gatebell.url}/admin/users/{number}/delete"
    )
    assert f"1 project in the personal namespace of {owner.username}" in page.text
    gone = administrator(gatebell).send_request("DELETE", f"/users/{number}")
    assert gone.status_code == 204
    theirs = script_of(gatebell, member)
    assert theirs.send_request("GET", f"/projects/{shop['id']}").status_code == 404
    # The name is available again, and does not redirect anywhere.
    made(theirs.send_request("POST", "/groups", json={"name": "x", "path": owner.username}))


def test_bots_have_no_personal_namespace(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    token = made(
        script.send_request(
            "POST",
            f"/groups/{group['id']}/access_tokens",
            json={"name": "ci", "scopes": ["api"], "access_level": 50},
        )
    )["token"]
    answer = Api(gatebell, token).send_request("POST", "/projects", json={"name": "Shop"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "namespace_id")


def test_a_user_with_a_reserved_name_has_no_personal_namespace(gatebell: LiveGatebell) -> None:
    owner, boss = make_user(gatebell), administrator(gatebell)
    script, browser = script_of(gatebell, owner), signed_in(gatebell, owner)
    form = f"{gatebell.url}/projects/new"
    assert "(personal namespace)" in browser.get(form).text
    made(
        boss.send_request(
            "PUT", f"/users/{find_user_id(gatebell, owner)}", json={"username": "OAuth"}
        ),
        200,
    )
    answer = script.send_request("POST", "/projects", json={"name": "Shop"})
    assert answer.status_code == 400
    assert "is reserved for the service itself" in answer.text
    assert "you need a group" in browser.get(form).text


@pytest.mark.long
@pytest.mark.both_databases
def test_the_form_offers_the_personal_namespace_to_users_without_groups(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{gatebell.url}/projects/new")
    submit(browser, page, form_with(page, "name"), group=owner.username, name="shop")
    shown = browser.get(f"{gatebell.url}/{owner.username}")
    assert shown.status_code == 200
    assert f"1 project of @{owner.username}" in shown.text
    assert "New project" in shown.text
    assert "Settings" not in shown.text.partition("<main")[2]
    listed = browser.get(f"{gatebell.url}/groups")
    assert f"/{owner.username}/shop" in listed.text
    settings = f"{gatebell.url}/{owner.username}/shop/-/settings"
    moved = browser.get(f"{settings}/transfer", params={"to": owner.username})
    assert "is already in" in moved.text
