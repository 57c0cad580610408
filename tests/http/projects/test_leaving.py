"""Members see the other members, and can leave with any role."""

from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.support.accounts.people import (
    Person,
    alice,
    make_project,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token, script_of
from tests.support.accounts.team import find_member_id, give_role
from tests.support.database.audit_log import get_event_about_user
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit


def address_of(gatebell: LiveGatebell, path: str) -> str:
    """Return the URL of the members page of a group or a project."""
    page = f"{path}/-/settings/members" if "/" in path else f"groups/{path}/-/members"
    return f"{gatebell.url}/{page}"


def new_member(gatebell: LiveGatebell, path: str, role: Role) -> tuple[Person, requests.Session]:
    """Return a new user with a role, and the user's browser."""
    person = make_user(gatebell, name="goer")
    give_role(gatebell, path, person, role)
    return person, open_browser(gatebell, person)


def membership_in_api(gatebell: LiveGatebell, person: Person, path: str) -> tuple[Api, str, int]:
    """Return an API client of a user, the API path of the members, and the user's id."""
    script = script_of(gatebell, person)
    own = int(script.send_request("GET", "/user").json()["id"])
    kind = "projects" if "/" in path else "groups"
    return script, f"/{kind}/{quote(path, safe='')}/members", own


@pytest.mark.long
@pytest.mark.parametrize("kind", ["group", "project"])
def test_a_guest_sees_members_changes_none_and_leaves(gatebell: LiveGatebell, kind: str) -> None:
    project = make_project(gatebell, alice(gatebell))
    path = project if kind == "project" else project.partition("/")[0]
    person, browser = new_member(gatebell, path, Role.GUEST)
    page = browser.get(address_of(gatebell, path))
    assert f"@{alice(gatebell).username}" in page.text
    assert (
        address_of(gatebell, path).removeprefix(gatebell.url)
        in browser.get(f"{gatebell.url}/{path}").text
    )
    actions = [form.action for form in forms_in(page.text) if "/members" in form.action]
    number = find_member_id(gatebell, path, person)
    assert [each.rpartition("/members/")[2] for each in actions] == [f"{number}/remove"]
    assert "Pending invitations" not in page.text
    form = form_to(page, f"/{number}/remove")
    # Direct requests are rejected as well.
    group = project.partition("/")[0]
    others = find_member_id(gatebell, group, alice(gatebell))
    token = {"csrf_token": form.value("csrf_token")}
    at = address_of(gatebell, group)
    give_role(gatebell, group, person, Role.GUEST)
    assert browser.post(f"{at}/{others}/remove", data=token).status_code == 403
    assert browser.post(f"{at}/{others}/role", data={**token, "role": "10"}).status_code == 403
    assert browser.post(at, data={**token, "user": "x", "role": "10"}).status_code == 403

    answer = submit(browser, page, form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/groups")
    assert f"You left {path}." in browser.get(f"{gatebell.url}/groups").text
    event = get_event_about_user(gatebell, person, EventKind.MEMBER_REMOVED)
    assert (event.actor_name, event.subject) == (person.username, path)
    assert submit(browser, page, form).status_code == 404


@pytest.mark.long
def test_the_last_owner_cannot_leave_and_sees_the_reason(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="founder")
    group = make_project(gatebell, owner).partition("/")[0]
    browser = signed_in(gatebell, owner)
    page = browser.get(address_of(gatebell, group))
    answer = submit(
        browser, page, form_to(page, f"/{find_member_id(gatebell, group, owner)}/remove")
    )
    assert answer.status_code == 422
    assert "A group must have an owner. Give the Owner role to another member" in answer.text
    assert "<h1>Members" in answer.text
    script, members, own = membership_in_api(gatebell, owner, group)
    refused = script.send_request("DELETE", f"{members}/{own}")
    assert "A group must have an owner" in refused.text
    assert script.send_request("GET", f"{members}/{own}").status_code == 200
    second, theirs = new_member(gatebell, group, Role.OWNER)
    assert script.send_request("DELETE", f"{members}/{own}").status_code == 204
    assert theirs.get(address_of(gatebell, group)).status_code == 200
    assert find_member_id(gatebell, group, second)


def test_an_inherited_role_can_be_left_only_in_its_group(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    person, browser = new_member(gatebell, project.partition("/")[0], Role.DEVELOPER)
    page = browser.get(address_of(gatebell, project))
    assert not [form for form in forms_in(page.text) if "/members" in form.action]
    script, members, own = membership_in_api(gatebell, person, project)
    assert script.send_request("DELETE", f"{members}/{own}").status_code == 404
    assert browser.get(f"{gatebell.url}/{project}").status_code == 200


@pytest.mark.long
def test_an_archived_project_can_be_left_and_members_removed(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    person, browser = new_member(gatebell, project, Role.REPORTER)
    other, _ = new_member(gatebell, project, Role.REPORTER)
    owner = signed_in(gatebell, alice(gatebell))
    settings = owner.get(f"{gatebell.url}/{project}/-/settings/general")
    assert submit(owner, settings, form_to(settings, "/archive")).status_code == 302
    page = browser.get(address_of(gatebell, project))
    left = submit(
        browser, page, form_to(page, f"/{find_member_id(gatebell, project, person)}/remove")
    )
    assert left.status_code == 302
    page = owner.get(address_of(gatebell, project))
    number = find_member_id(gatebell, project, other)
    assert not any(form.has("user") for form in forms_in(page.text))
    assert not any(form.action.endswith(f"/{number}/role") for form in forms_in(page.text))
    assert submit(owner, page, form_to(page, f"/{number}/remove")).status_code == 302
    assert f"@{other.username}" not in owner.get(page.url).text


def test_a_bot_cannot_leave_its_project(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    script = script_of(gatebell, alice(gatebell))
    bot = Api(gatebell, make_bot_token(script, get_namespace(gatebell, "projects", project)).clear)
    own = bot.send_request("GET", "/user").json()["id"]
    refused = bot.send_request("DELETE", f"/projects/{quote(project, safe='')}/members/{own}")
    assert refused.status_code == 400
    assert "Revoke the access token instead" in refused.text


def test_visitors_of_a_public_project_cannot_see_members_of_its_group(
    gatebell: LiveGatebell,
) -> None:
    group = make_project(gatebell, alice(gatebell), visibility="public").partition("/")[0]
    stranger = open_browser(gatebell, make_user(gatebell, name="stranger"))
    assert stranger.get(f"{gatebell.url}/{group}").status_code == 200
    answer = stranger.get(address_of(gatebell, group))
    assert answer.status_code == 403
    assert alice(gatebell).username not in answer.text
    assert "/-/members" not in stranger.get(f"{gatebell.url}/{group}").text


def test_a_rejected_user_name_stays_in_the_form(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    owner = signed_in(gatebell, alice(gatebell))
    page = owner.get(address_of(gatebell, project))
    answer = submit(owner, page, form_with(page, "user"), user="nobody-by-that-name", role="20")
    assert answer.status_code == 422
    form = form_with(answer, "user")
    assert (form.value("user"), form.value("role")) == ("nobody-by-that-name", "20")
    assert 'id="user-error"' in answer.text
