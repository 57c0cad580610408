"""Tests of the audit events of a project or group."""

from typing import Any

import pytest

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_user
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


def script_of(gatebell: LiveGatebell, person: Any = None) -> Api:
    return Api(gatebell, make_token(gatebell, person or make_user(gatebell)).clear)


def events(script: Api, path: str, query: str = "") -> list[dict[str, Any]]:
    answer = script.send_request("GET", f"{path}/audit_events?{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def names(found: list[dict[str, Any]]) -> list[str]:
    return [each["event_name"] for each in found]


@pytest.mark.long
def test_events_name_their_project_or_group_and_are_listed_there(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    at, of_group = f"/projects/{project['id']}", f"/groups/{group['id']}"
    made(script.send_request("PUT", at, json={"name": "Shop", "path": "store"}), 200)
    integration = {"type": "http", "name": "Hook"}
    made(script.send_request("POST", f"{at}/alert_management_integrations", json=integration))
    found = events(script, at)
    assert names(found) == ["integration.changed", "project.changed", "project.created"]
    for event in found:
        assert (event["entity_type"], event["entity_id"]) == ("Project", project["id"])
    paths = [event["details"]["entity_path"] for event in found]
    old = project["path_with_namespace"]
    assert paths == [f"{group['full_path']}/store"] * 2 + [old]
    (made_group,) = events(script, of_group)
    assert (made_group["entity_type"], made_group["entity_id"]) == ("Group", group["id"])
    assert made_group["details"]["entity_path"] == group["full_path"]
    one = made(script.send_request("GET", f"{at}/audit_events/{found[0]['id']}"), 200)
    assert one == found[0]
    elsewhere = script.send_request("GET", f"{of_group}/audit_events/{found[0]['id']}")
    assert elsewhere.status_code == 404

    admin = script_of(gatebell, get_shared_administrator(gatebell))
    seen = admin.send_request(
        "GET", f"/audit_events?entity_type=Project&entity_id={project['id']}"
    ).json()
    assert seen == found


@pytest.mark.long
def test_developers_see_their_own_events_and_guests_see_none(gatebell: LiveGatebell) -> None:
    owner, developer, maintainer, guest = (make_user(gatebell) for _ in range(4))
    script = script_of(gatebell, owner)
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    at, of_group = f"/projects/{project['id']}", f"/groups/{group['id']}"
    for person, role in (
        (developer, Role.DEVELOPER),
        (maintainer, Role.MAINTAINER),
        (guest, Role.GUEST),
    ):
        give_role(gatebell, group["full_path"], person, role)
    everything = events(script, at)
    assert events(script_of(gatebell, maintainer), at) == everything != []
    assert events(script_of(gatebell, developer), at) == []
    assert events(script_of(gatebell, maintainer), of_group) == []
    first = everything[0]["id"]
    for person, path in ((developer, at), (maintainer, of_group)):
        answer = script_of(gatebell, person).send_request("GET", f"{path}/audit_events/{first}")
        assert answer.status_code == 403
    for path in (at, of_group):
        assert (
            script_of(gatebell, guest).send_request("GET", f"{path}/audit_events").status_code
            == 403
        )
        assert script_of(gatebell).send_request("GET", f"{path}/audit_events").status_code == 404


def test_a_project_with_a_reused_path_does_not_list_events_of_the_former_project(
    gatebell: LiveGatebell,
) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    first = made(script.send_request("POST", "/projects", json=body))
    assert script.send_request("DELETE", f"/projects/{first['id']}").status_code == 202
    second = made(script.send_request("POST", "/projects", json=body))
    assert names(events(script, f"/projects/{second['id']}")) == ["project.created"]
    admin = script_of(gatebell, get_shared_administrator(gatebell))
    query = f"entity_type=Project&entity_id={first['id']}"
    answer = admin.send_request("GET", f"/audit_events?{query}").json()
    assert names(answer) == ["project.deleted", "project.created"]
    assert {each["details"]["entity_path"] for each in answer} == {first["path_with_namespace"]}


def test_the_list_of_events_supports_pages_and_time_filters(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    at = f"/groups/{group['id']}"
    for name in ("a", "b"):
        made(script.send_request("PUT", at, json={"name": name}), 200)
    assert len(events(script, at)) == 3
    assert len(events(script, at, "per_page=2&page=2")) == 1
    assert len(events(script, at, "pagination=keyset&order_by=id&per_page=2")) == 2
    assert events(script, at, "created_before=2020-01-01T00:00:00Z") == []
    assert len(events(script, at, "created_after=2020-01-01T00:00:00Z")) == 3
