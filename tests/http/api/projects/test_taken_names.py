"""Tests that taken paths and names are rejected with the message that GitLab clients expect."""

from typing import Any

import pytest
import requests

from tests.http.api.projects.test_projects_api import made, new_group
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_application, make_user, signed_in
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.oauth.oauth_wire import open_authorization
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

TAKEN = ["has already been taken"]


@pytest.fixture
def script(gatebell: LiveGatebell) -> Api:
    return Api(gatebell, make_token(gatebell, get_shared_administrator(gatebell)).clear)


def assert_taken(answer: requests.Response, field: str = "path") -> None:
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"] == {field: TAKEN}
    (said,) = answer.json()["errors"]
    assert (said["field"], "already" in said["message"]) == (field, True)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_taken_path_of_a_group_or_project_is_rejected(script: Api) -> None:
    group, other = new_group(script), new_group(script)
    assert_taken(script.send_request("POST", "/groups", json={"path": group["path"].upper()}))
    body = {"path": "shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    assert_taken(script.send_request("POST", "/projects", json=body))
    below = {"path": "shop", "parent_id": group["id"]}
    assert_taken(script.send_request("POST", "/groups", json=below))
    assert_taken(script.send_request("PUT", f"/groups/{other['id']}", json={"path": group["path"]}))
    second = made(script.send_request("POST", "/projects", json={**body, "path": "web"}))
    assert_taken(script.send_request("PUT", f"/projects/{second['id']}", json={"path": "shop"}))
    made(
        script.send_request("POST", "/projects", json={"path": "shop", "namespace_id": other["id"]})
    )
    away = {"namespace": other["id"]}
    assert_taken(script.send_request("PUT", f"/projects/{project['id']}/transfer", json=away))


def test_a_taken_name_of_an_environment_link_or_member_role_is_rejected(script: Api) -> None:
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    url = f"/projects/{made(script.send_request('POST', '/projects', json=body))['id']}"
    environment = {"name": "production"}
    made(script.send_request("POST", f"{url}/environments", json=environment))
    assert_taken(script.send_request("POST", f"{url}/environments", json=environment), "name")
    made(script.send_request("POST", f"{url}/releases", json={"tag_name": "v1"}))
    link = {"name": "docs", "url": "https://docs.example"}
    made(script.send_request("POST", f"{url}/releases/v1/assets/links", json=link))
    assert_taken(script.send_request("POST", f"{url}/releases/v1/assets/links", json=link), "name")
    role: dict[str, Any] = {"name": group["path"], "base_access_level": 10, "read_code": True}
    made(script.send_request("POST", "/member_roles", json=role))
    assert_taken(script.send_request("POST", "/member_roles", json=role), "name")


def test_scopes_with_wrong_separators_get_a_hint(gatebell: LiveGatebell, script: Api) -> None:
    person = make_user(gatebell)
    client, browser = make_application(gatebell, person), signed_in(gatebell, person)
    for scopes in ("read_user,api", "read_user;api", "read_user, openid,api"):
        body = {"name": "x", "redirect_uri": "https://app.example/callback", "scopes": scopes}
        refused = script.send_request("POST", "/applications", json=body)
        landed = open_authorization(browser, gatebell, client, scope=scopes)
        if "," not in scopes:
            assert "separate scopes with spaces" in refused.json()["error"]
        assert "separate+scopes+with+spaces" in landed.headers["Location"]
    # An unknown scope gets no hint.
    landed = open_authorization(browser, gatebell, client, scope="colour,taste")
    assert "Unknown+scope" in landed.headers["Location"]
    assert "spaces" not in landed.headers["Location"]
