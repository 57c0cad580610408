"""Tests of groups in the API: lists, creation and subgroups."""

from typing import Any
from urllib.parse import quote

import pytest

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group, script_of
from tests.support.accounts.people import make_project, make_user, unique
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token
from tests.support.accounts.team import give_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
FIELDS = {
    *("id", "name", "path", "full_path", "full_name", "description", "visibility", "parent_id"),
    *("web_url", "created_at", "require_two_factor_authentication", "two_factor_grace_period"),
}


@pytest.mark.both_databases
def test_a_group_and_a_subgroup_are_created_read_and_changed(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = new_group(script, description="We sell things")
    body = {"name": "Web shops", "path": "shops", "parent_id": group["id"]}
    below = made(script.send_request("POST", "/groups", json=body))
    path = f"{group['path']}/shops"
    assert set(below) == FIELDS
    assert below["full_path"] == path
    assert below["full_name"] == f"{group['name']} / Web shops"
    assert (below["parent_id"], group["parent_id"]) == (group["id"], None)
    assert below["web_url"] == f"{gatebell.url}/{path}"
    assert (group["description"], group["visibility"]) == ("We sell things", "private")
    for reference in (str(below["id"]), quote(path, safe="")):
        assert made(script.send_request("GET", f"/groups/{reference}"), 200) == below
    changed = made(
        script.send_request("PUT", f"/groups/{below['id']}", json={"name": "Shops"}), 200
    )
    assert changed == {**below, "name": "Shops", "full_name": f"{group['name']} / Shops"}
    kinds = [each.kind for each in list_events_with_subject(gatebell, path)]
    assert kinds == ["group.changed", "group.created"]


NO_GROUPS: tuple[tuple[dict[str, Any], int, list[str]], ...] = (
    ({}, 400, ["path"]),
    ({"path": "a b"}, 400, ["path"]),
    ({"path": "a/b"}, 400, ["path"]),
    ({"path": "API"}, 400, ["path"]),
    ({"path": "x", "parent_id": 2**62}, 404, []),
    ({"path": "x", "parent_id": 0}, 400, ["parent_id"]),
    ({"path": "TAKEN"}, 400, ["path"]),
    ({"path": "x", "description": "x" * 2001}, 400, ["description"]),
    ({"path": "x", "name": " \u200b" * 60}, 400, ["name"]),
)


def test_an_invalid_group_is_rejected_with_the_field(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    taken = new_group(script)["path"].upper()
    for body, status, fields in NO_GROUPS:
        given = {**body, "path": taken} if body.get("path") == "TAKEN" else body
        answer = script.send_request("POST", "/groups", json=given)
        assert answer.status_code == status, answer.text
        assert [each["field"] for each in answer.json().get("errors", [])] == fields, body


def test_subgroups_can_be_created_by_maintainers_of_the_group(gatebell: LiveGatebell) -> None:
    other = make_user(gatebell)
    group, script = new_group(script_of(gatebell)), script_of(gatebell, other)
    body = {"path": "below", "parent_id": group["id"]}
    for role, status in ((None, 404), (Role.DEVELOPER, 403), (Role.MAINTAINER, 201)):
        if role is not None:
            give_role(gatebell, group["full_path"], other, role)
        assert script.send_request("POST", "/groups", json=body).status_code == status


def test_a_bot_can_create_groups_and_projects_only_in_its_own_group(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    group = get_namespace(gatebell, "groups", make_project(gatebell, alice))
    bot = Api(gatebell, make_bot_token(script_of(gatebell, alice), group, access_level=40).clear)
    assert bot.send_request("POST", "/groups", json={"path": unique("bot")}).status_code == 403
    below = made(bot.send_request("POST", "/groups", json={"path": "below", "parent_id": group.id}))
    project = made(
        bot.send_request("POST", "/projects", json={"path": "x", "namespace_id": below["id"]})
    )
    assert project["permissions"]["project_access"] is None


@pytest.mark.long
@pytest.mark.both_databases
def test_the_list_of_groups_depends_on_the_caller_and_the_filters(gatebell: LiveGatebell) -> None:
    owner, reader = make_user(gatebell), make_user(gatebell)
    script, other = script_of(gatebell, owner), script_of(gatebell, reader)
    word = unique("find")
    top = made(script.send_request("POST", "/groups", json={"path": word, "name": "Top"}))
    child = made(script.send_request("POST", "/groups", json={"path": "b", "parent_id": top["id"]}))
    grand = made(
        script.send_request("POST", "/groups", json={"path": "a", "parent_id": child["id"]})
    )
    shop = {"path": "shop", "namespace_id": grand["id"], "visibility": "internal"}
    made(script.send_request("POST", "/projects", json=shop))

    def listed(of: Api, path: str = "/groups", **query: Any) -> list[int]:
        answer = of.send_request("GET", path, params={"search": word, **query})
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()]

    ids = {"top": top["id"], "child": child["id"], "grand": grand["id"]}
    assert listed(script) == [ids["grand"], ids["child"], ids["top"]]
    assert listed(script, order_by="path", sort="desc")[-1] == ids["top"]
    assert listed(script, top_level_only="true") == [ids["top"]]
    assert listed(script, skip_groups=f"{ids['top']},{ids['grand']}") == [ids["child"]]
    assert listed(script, f"/groups/{top['id']}/subgroups") == [ids["child"]]
    below = listed(script, f"/groups/{top['id']}/descendant_groups")
    assert below == [ids["grand"], ids["child"]]
    # This group contains a project that is visible to all signed-in users.
    assert listed(other) == [ids["grand"]]
    assert listed(other, all_available="false") == []
    assert other.send_request("GET", f"/groups/{child['id']}").status_code == 404
    give_role(gatebell, child["full_path"], reader, Role.DEVELOPER)
    assert listed(other, min_access_level=30) == [ids["grand"], ids["child"]]
    assert listed(other, owned="true") == []
    first = script.send_request(
        "GET", f"/groups?search={word}&pagination=keyset&order_by=id&per_page=2"
    )
    assert [each["id"] for each in first.json()] == [ids["top"], ids["child"]]
    rest = script.send_request("GET", first.links["next"]["url"].partition("/api/v4")[2])
    assert [each["id"] for each in rest.json()] == [ids["grand"]]
    assert "next" not in rest.links
