"""Renamed, transferred and deleted groups and projects, and their old URLs."""

import json
import re
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from domain.registry.repositories import find_repository_project
from tests.http.api.projects.test_projects_api import made, path_of, script_of
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    signed_in,
    unique,
)
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, forms_in, submit

pytestmark = pytest.mark.one_database("postgres")
_REFS = "info/refs?service=git-upload-pack"


def rename(gatebell: LiveGatebell, owner: Person, project: str, path: str) -> str:
    """Rename a project on its page, and return the new path."""
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{gatebell.url}/{project}/-/settings/path")
    answer = submit(browser, page, form_with(page, "path"), path=path)
    assert answer.status_code == 302, answer.text
    return f"{project.rpartition('/')[0]}/{path}"


@pytest.mark.long
@pytest.mark.both_databases
def test_a_renamed_project_is_found_at_its_old_path(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    old = make_project(gatebell, owner, visibility="public")
    endpoint, browser = connect(gatebell, old), signed_in(gatebell, owner)
    open_page = browser.get(f"{gatebell.url}/{old}/-/settings/general")
    endpoint.accepted(title="before")
    new = rename(gatebell, owner, old, "store")
    # Senders do not follow redirects, so the old URLs accept alerts, including the short URLs.
    endpoint.accepted(title="after")
    short = endpoint.url.partition("/alerts/notify/")[0] + "/alerts/notify.json"
    taken = requests.post(short, json={"title": "short"}, headers=endpoint.bearer, timeout=60)
    assert taken.status_code == 200
    # Pages redirect with their query, and an open form is sent to the new path.
    moved = browser.get(f"{gatebell.url}/{old}/-/alerts?search=after", allow_redirects=False)
    assert (moved.status_code, moved.headers["Location"]) == (302, f"/{new}/-/alerts?search=after")
    assert "<bdi>after</bdi>" in browser.get(f"{gatebell.url}/{old}/-/alerts").text
    assert browser.get(f"{gatebell.url}/{old}").url == f"{gatebell.url}/{new}"
    sent = submit(browser, open_page, form_with(open_page, "visibility"), name="Store")
    assert sent.status_code == 307
    assert sent.headers["Location"] == f"/{new}/-/settings/general"
    # As in GitLab's API, GET requests are redirected to the id, and other requests are rejected.
    script = script_of(gatebell, owner)
    answer = script.send_request(
        "GET", f"{path_of(old)}/alert_management_alerts", allow_redirects=False
    )
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/api/v4/projects/")
    assert len(script.send_request("GET", f"{path_of(old)}/alert_management_alerts").json()) == 3
    refused = script.send_request("PUT", path_of(old), json={"name": "x"})
    assert refused.status_code == 405
    assert "moved projects" in refused.json()["message"]
    assert browser.get(f"{gatebell.url}/{old}.git/{_REFS}").status_code == 200
    event = list_events_with_subject(gatebell, new)[0]
    assert (event.details["path_before"], event.details["path"]) == (old, new)


def test_an_old_path_reveals_nothing_to_other_users(gatebell: LiveGatebell) -> None:
    owner, stranger = make_user(gatebell), signed_in(gatebell, make_user(gatebell, name="mallory"))
    old = make_project(gatebell, owner)
    rename(gatebell, owner, old, "store")
    anonymous = gatebell.http()
    for path in (old, f"{old}/-/alerts"):
        assert stranger.get(f"{gatebell.url}/{path}").status_code == 404
        assert "/users/sign_in" in anonymous.get(f"{gatebell.url}/{path}").url
    assert anonymous.get(f"{gatebell.url}/{old}.git/{_REFS}").status_code == 401


@pytest.mark.long
@pytest.mark.both_databases
def test_a_renamed_group_reserves_its_old_path_until_its_release(
    gatebell: LiveGatebell,
) -> None:
    owner, other = make_user(gatebell), make_user(gatebell, name="bob")
    script, project = script_of(gatebell, owner), make_project(gatebell, owner)
    old = project.partition("/")[0]
    below = made(
        script.send_request(
            "POST",
            "/groups",
            json={"path": "eu", "parent_id": get_namespace(gatebell, "groups", project).id},
        )
    )
    body = {"name": "web", "namespace_id": below["id"]}
    inner = made(script.send_request("POST", "/projects", json=body))["path_with_namespace"]
    endpoint = connect(gatebell, inner)
    new = unique("corp")
    group = made(script.send_request("PUT", f"/groups/{old}", json={"path": new}), 200)
    assert group["full_path"] == new
    web = made(script.send_request("GET", path_of(f"{new}/eu/web")), 200)
    assert web["namespace"]["full_path"] == f"{new}/eu"
    endpoint.accepted(title="still there")
    # Another user cannot use the path for a group.
    thief = script_of(gatebell, other)
    taken = thief.send_request("POST", "/groups", json={"path": old})
    assert taken.status_code == 400
    assert taken.json()["message"] == {"path": ["has already been taken"]}
    assert "former path" in taken.json()["errors"][0]["message"]
    # The group itself can return to its own old path.
    assert (
        made(script.send_request("PUT", f"/groups/{new}", json={"path": old}), 200)["full_path"]
        == old
    )
    assert script.send_request("GET", f"/groups/{new}").json()["full_path"] == old
    made(script.send_request("PUT", f"/groups/{old}", json={"path": new}), 200)
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{gatebell.url}/groups/{new}/-/path")
    released = [form for form in forms_in(page.text) if form.action.endswith("/release")]
    assert submit(browser, page, released[0]).status_code == 302
    assert endpoint.post(b"{}").status_code == 404
    made(thief.send_request("POST", "/groups", json={"path": old}))


def test_invalid_paths_are_rejected_and_change_nothing(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    for path in ("a b", "a/b", "x" * 101, "", "shop.git", "\x00"):
        answer = script.send_request(
            "PUT", path_of(project), json={"path": path, "name": "changed"}
        )
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "path"), path
    assert made(script.send_request("GET", path_of(project)), 200)["name"] == "shop"
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{gatebell.url}/{project}/-/settings/path")
    for path in ("a b", "x" * 101, "x" * 3_000, "\x00"):
        answer = submit(browser, page, form_with(page, "path"), path=path)
        assert (answer.status_code, 'id="path-error"' in answer.text) == (422, True), path
    assert browser.get(page.url).status_code == 200


def test_a_group_cannot_take_the_name_of_a_route(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    group = make_project(gatebell, owner).partition("/")[0]
    for word in ("oauth", "Admin", "-", "help", "api"):
        answer = script_of(gatebell, owner).send_request(
            "PUT", f"/groups/{group}", json={"path": word}
        )
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "path"), word


@pytest.mark.long
@pytest.mark.both_databases
def test_a_transfer_lists_changed_roles_and_keeps_everything_else(gatebell: LiveGatebell) -> None:
    owner, helper, newcomer = (
        make_user(gatebell, name=name) for name in ("alice", "helper", "newcomer")
    )
    old, other = make_project(gatebell, owner), make_project(gatebell, owner)
    source, target = old.partition("/")[0], other.partition("/")[0]
    give_role(gatebell, source, helper, Role.DEVELOPER)
    give_role(gatebell, target, newcomer, Role.REPORTER)
    script = script_of(gatebell, owner)
    bot = make_bot_token(script, get_namespace(gatebell, "projects", old))
    made(script.send_request("PUT", path_of(old), json={"path": "web"}), 200)
    old = f"{source}/web"
    endpoint, browser = connect(gatebell, old), signed_in(gatebell, owner)
    url = f"{gatebell.url}/{old}/-/settings/transfer"
    explained = browser.get(url, params={"to": target})
    rows = [row.partition("</tr>")[0] for row in explained.text.split('<tr role="row">')]
    (lost,) = [row for row in rows if helper.username in row]
    (gained,) = [row for row in rows if newcomer.username in row]
    for row, words in ((lost, ("Developer", "No access")), (gained, ("No access", "Reporter"))):
        assert re.findall(r'data-label="\w+">([^<]+)<', row) == list(words)
    form = form_with(explained, "confirmation")
    refused = submit(browser, explained, form, confirmation="something else")
    assert refused.status_code == 422
    answer = submit(browser, explained, form, confirmation=old)
    new = f"{target}/web"
    assert answer.headers["Location"] == f"/{new}/-/settings/general"
    endpoint.accepted(title="under the old URL")
    assert signed_in(gatebell, helper).get(f"{gatebell.url}/{new}").status_code == 404
    assert signed_in(gatebell, newcomer).get(f"{gatebell.url}/{new}").status_code == 200
    as_bot = {"PRIVATE-TOKEN": bot.clear}
    seen = gatebell.http().get(f"{gatebell.url}/api/v4{path_of(new)}", headers=as_bot)
    assert seen.status_code == 200
    with database_of(gatebell) as session:  # Images keep their names.
        found = find_repository_project(f"{old}/app", session=session)
        assert found is not None
        assert found.path == new


@pytest.mark.long
def test_a_transfer_needs_the_maintainer_role_in_the_target(gatebell: LiveGatebell) -> None:
    owner, stranger = make_user(gatebell), make_user(gatebell, name="bob")
    project, foreign = make_project(gatebell, owner), make_project(gatebell, stranger)
    script, group = script_of(gatebell, owner), foreign.partition("/")[0]
    for target, status in ((group, 404), (project.partition("/")[0], 400), (2**40, 404)):
        answer = script.send_request(
            "PUT", f"{path_of(project)}/transfer", json={"namespace": target}
        )
        assert answer.status_code == status, answer.text
    give_role(gatebell, group, owner, Role.DEVELOPER)
    answer = script.send_request("PUT", f"{path_of(project)}/transfer", json={"namespace": group})
    assert answer.status_code == 403
    give_role(gatebell, group, owner, Role.MAINTAINER)
    listed = script.send_request("GET", f"{path_of(project)}/transfer_locations").json()
    assert [each["full_path"] for each in listed] == [group]
    # The target already has a project with this path.
    answer = script.send_request("PUT", f"{path_of(project)}/transfer", json={"namespace": group})
    assert answer.status_code == 400
    assert answer.json()["message"] == {"path": ["has already been taken"]}


@pytest.mark.long
@pytest.mark.both_databases
def test_a_group_moves_to_the_top_and_keeps_an_owner(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    script, project = script_of(gatebell, owner), make_project(gatebell, owner)
    top, leaf = get_namespace(gatebell, "groups", project), unique("eu")
    below = made(script.send_request("POST", "/groups", json={"path": leaf, "parent_id": top.id}))
    own = f"/groups/{below['id']}/members/{script.send_request('GET', '/user').json()['id']}"
    assert script.send_request("DELETE", own).status_code == 204
    inside = script.send_request(
        "POST", f"/groups/{top.id}/transfer", json={"group_id": below["id"]}
    )
    assert inside.status_code == 400
    moved = made(script.send_request("POST", f"/groups/{below['id']}/transfer", json={}))
    assert (moved["full_path"], moved["parent_id"]) == (leaf, None)
    members = script.send_request("GET", f"/groups/{below['id']}/members").json()
    assert [each["access_level"] for each in members] == [50]
    old = quote(f"{project.partition('/')[0]}/{leaf}", safe="")
    assert script.send_request("GET", f"/groups/{old}").json()["full_path"] == leaf


@pytest.mark.long
def test_the_page_of_a_deletion_counts_the_affected_objects(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project, browser = make_project(gatebell, owner), signed_in(gatebell, owner)
    endpoint = connect(gatebell, project)
    for number in range(3):
        endpoint.accepted(title=f"alert {number}")
    group = project.partition("/")[0]
    page = browser.get(f"{gatebell.url}/groups/{group}/-/delete")
    for words in ("1 project<", "3 alerts<", "1 integration<"):
        assert words in page.text
    form = form_with(page, "confirmation")
    assert submit(browser, page, form, confirmation="acme").status_code == 422
    assert submit(browser, page, form, confirmation=group).status_code == 302
    assert browser.get(f"{gatebell.url}/{project}").status_code == 404
    assert endpoint.post(json.dumps({"title": "late"}).encode()).status_code == 404
