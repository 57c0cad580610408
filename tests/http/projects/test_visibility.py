"""Visibility of projects: only owners can change it."""

import pytest

from domain.access.roles import Role
from tests.support.accounts.people import alice, make_project
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import (
    create_member_script,
    get_namespace,
    make_bot_token,
    script_of,
)
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

SETTINGS = "monitor_access_level"


def visibility_of(gatebell: LiveGatebell, project: str) -> str:
    script = script_of(gatebell, alice(gatebell))
    answer = script.send_request("GET", f"/projects/{project.replace('/', '%2F')}")
    return str(answer.json()["visibility"])


def put(script: Api, project: str, **values: str) -> tuple[int, str]:
    answer = script.send_request("PUT", f"/projects/{project.replace('/', '%2F')}", json=values)
    return answer.status_code, answer.text


def test_a_maintainer_cannot_change_the_visibility_in_the_api(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    script = create_member_script(
        gatebell, get_namespace(gatebell, "projects", project), Role.MAINTAINER
    )
    for visibility in ("public", "internal"):
        status, said = put(script, project, visibility=visibility, description="changed")
        assert status == 403
        assert f"You need the Owner role in {project} to change its visibility." in said
    assert (visibility_of(gatebell, project), list_events_with_subject(gatebell, project)) == (
        "private",
        [],
    )
    # Programs that send all values are not rejected for an unchanged visibility.
    assert put(script, project, visibility="private", description="changed")[0] == 200
    assert put(script_of(gatebell, alice(gatebell)), project, visibility="internal")[0] == 200
    assert visibility_of(gatebell, project) == "internal"


@pytest.mark.parametrize("kind", ["projects", "groups"])
def test_a_bot_cannot_change_the_visibility(gatebell: LiveGatebell, kind: str) -> None:
    project = make_project(gatebell, alice(gatebell))
    namespace = get_namespace(gatebell, kind, project)
    made = make_bot_token(script_of(gatebell, alice(gatebell)), namespace, access_level=50)
    status, said = put(Api(gatebell, made.clear), project, visibility="public")
    assert status == 403, said
    assert visibility_of(gatebell, project) == "private"
    assert put(Api(gatebell, made.clear), project, description="changed")[0] == 200


def test_the_page_offers_the_visibility_only_to_owners(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    url = f"{gatebell.url}/{project}/-/settings/general"
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(url)
    assert 'name="visibility"' not in page.text
    assert "Visibility: private. You need the Owner role to change it." in page.text
    forged = submit(browser, page, form_with(page, SETTINGS), visibility="public", name="Forged")
    assert forged.status_code in {302, 403}
    assert visibility_of(gatebell, project) == "private"
    owner = browser_of(gatebell, project, Role.OWNER)
    page = owner.get(url)
    assert submit(owner, page, form_with(page, SETTINGS), visibility="public").status_code == 302
    assert visibility_of(gatebell, project) == "public"
    # A user who has lost the role meanwhile cannot change it.
    page = owner.get(url)
    give_role(gatebell, project, person_for(gatebell, Role.OWNER), Role.MAINTAINER)
    submit(owner, page, form_with(page, SETTINGS), visibility="private")
    assert visibility_of(gatebell, project) == "public"
