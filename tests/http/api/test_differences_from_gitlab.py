"""Checks the statements of docs/differences-from-gitlab.md."""

import re
from pathlib import Path

import pytest

from tests.http.api.projects.test_projects_api import made, new_group
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_application, make_user, signed_in
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.oauth.oauth_wire import machine, open_authorization
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

PAGE = Path("docs/differences-from-gitlab.md").read_text(encoding="utf-8")
MISSING = re.findall(r"^\| `([A-Z]+) (/api/[^`]*)` \|", PAGE, re.MULTILINE)
_INSTEAD = re.findall(r"^\| `[A-Z]+ /api/[^`]*` \| `(/[a-z_/:]+)`", PAGE, re.MULTILINE)


@pytest.fixture
def script(gatebell: LiveGatebell) -> Api:
    return Api(gatebell, make_token(gatebell, get_shared_administrator(gatebell)).clear)


def test_endpoints_listed_as_missing_are_not_found(gatebell: LiveGatebell, script: Api) -> None:
    assert len(MISSING) > 12
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    found = {}
    for method, path in MISSING:
        number = project["id"] if "/projects/" in path else group["id"]
        url = f"{gatebell.url}{path.replace(':id', str(number))}"
        headers = {"PRIVATE-TOKEN": script.token}
        found[path] = machine(gatebell).request(method, url, headers=headers).status_code
    assert set(found.values()) == {404}, found


def test_endpoints_listed_as_alternatives_exist(script: Api) -> None:
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    number = made(script.send_request("POST", "/projects", json=body))["id"]
    assert len(_INSTEAD) > 2
    for path in _INSTEAD:
        method = "POST" if path.endswith(":sha") else "GET"
        at = path.replace(":id", str(number)).replace(":sha", "a" * 40)
        assert script.send_request(method, at, json={}).status_code in {200, 400}, path


def test_a_group_has_the_highest_visibility_of_its_projects(script: Api) -> None:
    group = new_group(script, visibility="public")
    assert group["visibility"] == "private"
    body = {"path": "shop", "namespace_id": group["id"], "visibility": "internal"}
    assert made(script.send_request("POST", "/projects", json=body))["namespace"]["kind"] == "group"
    now = made(script.send_request("GET", f"/groups/{group['id']}"), 200)
    assert now["visibility"] == "internal"


def test_scopes_that_exist_only_in_gitlab_are_rejected(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    client = make_application(gatebell, person)
    for scope in ("ai_features", "create_runner", "k8s_proxy"):
        assert scope in PAGE
        landed = open_authorization(signed_in(gatebell, person), gatebell, client, scope=scope)
        assert "error=invalid_scope" in landed.headers["Location"]


@pytest.mark.spec("C2")
def test_all_descriptions_of_the_device_grant_name_its_releases(gatebell: LiveGatebell) -> None:
    words = re.compile(r"introduced in release 17\.2\s+and is on by default from 17\.3")
    page = (
        signed_in(gatebell, get_shared_administrator(gatebell))
        .get(f"{gatebell.url}/admin/settings")
        .text
    )
    guide = Path("docs/device-and-password-grants.md").read_text(encoding="utf-8")
    for text in (page, guide, PAGE):
        assert words.search(text)
