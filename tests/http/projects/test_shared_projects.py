"""Projects that are shared with groups: resulting roles and expiry."""

from datetime import timedelta
from typing import Any

import pytest
import requests

from domain.access.roles import Ability, Role
from tests.http.api.projects.test_projects_api import made, new_group, path_of, script_of
from tests.support.accounts.administration import find_user_id, get_shared_administrator
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    now,
    signed_in,
)
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.team import give_role, take_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit


def share(script: Api, project: str, group: dict[str, Any], **more: Any) -> requests.Response:
    body = {"group_id": group["id"], "group_access": 30, **more}
    return script.send_request("POST", f"{path_of(project)}/share", json=body)


def role_of(script: Api, project: str) -> int | None:
    """Return the caller's role in a project, or None if the project is not visible."""
    answer = script.send_request("GET", path_of(project))
    if answer.status_code == 404:
        return None
    access = made(answer, 200)["permissions"]["project_access"]
    return int(access["access_level"]) if access else None


def members_of(script: Api, project: str) -> dict[str, int]:
    return {each["username"]: each["access_level"] for each in listed(script, project)}


def listed(script: Api, project: str) -> Any:
    return made(script.send_request("GET", f"{path_of(project)}/members/all"), 200)


def team_of(gatebell: LiveGatebell, owner: Person, **roles: Role) -> tuple[dict[str, Any], Any]:
    """Return a group of an owner, and its new members with these roles, by name."""
    group = new_group(script_of(gatebell, owner))
    people = {name: make_user(gatebell, name=name) for name in roles}
    for name, role in roles.items():
        give_role(gatebell, group["full_path"], people[name], role)
    return group, people


@pytest.mark.both_databases
def test_members_of_the_group_get_at_most_the_role_of_the_share(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, guest=Role.GUEST, keeper=Role.MAINTAINER)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    keeper, guest = (script_of(gatebell, people[name]) for name in ("keeper", "guest"))
    assert role_of(keeper, project) is None
    made_share = made(share(script, project, group))
    number = made(script.send_request("GET", path_of(project)), 200)["id"]
    assert made_share == {
        "id": made_share["id"],
        "project_id": number,
        "group_id": group["id"],
        "group_access": 30,
        "expires_at": None,
    }
    assert (role_of(keeper, project), role_of(guest, project)) == (30, 10)
    names = {people["keeper"].username: 30, people["guest"].username: 10, owner.username: 50}
    assert members_of(script, project) == names
    assert number in [
        each["id"] for each in keeper.send_request("GET", "/projects?membership=true").json()
    ]
    owned = keeper.send_request("GET", "/projects?min_access_level=40").json()
    assert number not in [each["id"] for each in owned]
    (shown,) = made(keeper.send_request("GET", path_of(project)), 200)["shared_with_groups"]
    assert shown == {
        "group_id": group["id"],
        "group_name": group["name"],
        "group_full_path": group["full_path"],
        "group_access_level": 30,
        "expires_at": None,
    }
    alerts = f"{path_of(project)}/alert_management_alerts"
    assert keeper.send_request("GET", alerts).status_code == 200
    assert guest.send_request("GET", alerts).status_code == 403
    # Another share with the same group changes the role.
    assert made(share(script, project, group, group_access=40))["id"] == made_share["id"]
    assert role_of(keeper, project) == 40
    gone = script.send_request("DELETE", f"{path_of(project)}/share/{group['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert role_of(keeper, project) is None
    assert (
        script.send_request("DELETE", f"{path_of(project)}/share/{group['id']}").status_code == 404
    )
    events = list_events_with_subject(gatebell, project)
    roles = [each.details["role"] for each in events if each.details.get("group")]
    assert roles == ["none", "Maintainer", "Developer"]


@pytest.mark.both_databases
def test_members_of_ancestor_groups_are_members_of_the_group(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, chief=Role.MAINTAINER)
    script = script_of(gatebell, owner)
    body = {"name": "Below", "path": "below", "parent_id": group["id"]}
    below = made(script.send_request("POST", "/groups", json=body))
    beside = f"{group['path']}x"  # Its path has the same beginning.
    made(script.send_request("POST", "/groups", json={"name": "x", "path": beside}))
    stranger = make_user(gatebell)
    give_role(gatebell, beside, stranger, Role.OWNER)
    project = make_project(gatebell, owner)
    made(share(script, project, below, group_access=20))
    assert role_of(script_of(gatebell, people["chief"]), project) == 20
    assert members_of(script, project)[people["chief"].username] == 20
    assert role_of(script_of(gatebell, stranger), project) is None
    assert stranger.username not in members_of(script, project)


@pytest.mark.long
@pytest.mark.both_databases
def test_the_highest_role_applies(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    low, people = team_of(gatebell, owner, one=Role.OWNER)
    high, _ = team_of(gatebell, owner)
    give_role(gatebell, high["full_path"], people["one"], Role.REPORTER)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    one = script_of(gatebell, people["one"])
    made(share(script, project, low, group_access=10))
    made(share(script, project, high, group_access=40))
    assert role_of(one, project) == 20
    give_role(gatebell, project, people["one"], Role.DEVELOPER)
    assert role_of(one, project) == members_of(script, project)[people["one"].username] == 30
    take_role(gatebell, project, people["one"])
    take_role(gatebell, high["full_path"], people["one"])
    assert role_of(one, project) == members_of(script, project)[people["one"].username] == 10
    take_role(gatebell, low["full_path"], people["one"])
    assert role_of(one, project) is None


@pytest.mark.long
@pytest.mark.both_databases
def test_a_share_ends_on_its_expiry_date(gatebell: LiveGatebell) -> None:
    from models import ProjectShare  # noqa: PLC0415 - a row that only time could change

    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, keeper=Role.MAINTAINER)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    today = now().date()
    late = share(script, project, group, expires_at=today.isoformat())
    assert late.status_code == 400
    tomorrow = (today + timedelta(days=1)).isoformat()
    number = made(share(script, project, group, expires_at=tomorrow))["id"]
    keeper = people["keeper"].username
    (member,) = [each for each in listed(script, project) if each["username"] == keeper]
    assert member["expires_at"] == tomorrow
    with database_of(gatebell) as session:
        session.get_one(ProjectShare, number).expires_at = today
    assert role_of(script_of(gatebell, people["keeper"]), project) is None
    assert people["keeper"].username not in members_of(script, project)
    assert made(script.send_request("GET", path_of(project)), 200)["shared_with_groups"] == []
    lasting = made(share(script, make_project(gatebell, owner), group))["id"]
    gatebell.cli("prune")
    with database_of(gatebell) as session:
        assert session.get(ProjectShare, number) is None
        assert session.get(ProjectShare, lasting) is not None


@pytest.mark.long
def test_sharing_needs_a_role_in_project_and_group(gatebell: LiveGatebell) -> None:
    owner, keeper = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, owner)
    give_role(gatebell, project, keeper, Role.MAINTAINER)
    developer, foreign = make_user(gatebell), make_user(gatebell)
    give_role(gatebell, project, developer, Role.DEVELOPER)
    group, _ = team_of(gatebell, keeper)
    give_role(gatebell, group["full_path"], developer, Role.OWNER)
    own, others = script_of(gatebell, keeper), new_group(script_of(gatebell, foreign))
    assert share(script_of(gatebell, developer), project, group).status_code == 403
    assert share(own, project, group, group_access=50).status_code == 400
    assert share(own, project, others).status_code == 404
    assert share(own, project, {"id": 2**62}).status_code == 404
    public = {"name": "Open", "namespace_id": others["id"], "visibility": "public"}
    made(script_of(gatebell, foreign).send_request("POST", "/projects", json=public))
    assert share(own, project, others).status_code == 403
    space = made(own.send_request("POST", "/projects", json={"name": "Mine"}))["namespace"]
    personal = share(own, project, space)
    assert (personal.status_code, "is a personal namespace" in personal.text) == (403, True)
    holder = made(own.send_request("GET", path_of(project)), 200)["namespace"]
    above = share(script_of(gatebell, owner), project, holder)
    assert (above.status_code, "group already have access" in above.text) == (400, True)


def test_a_share_above_the_own_role_cannot_be_changed_or_ended(gatebell: LiveGatebell) -> None:
    owner, keeper = make_user(gatebell), make_user(gatebell)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    give_role(gatebell, project, keeper, Role.MAINTAINER)
    group, people = team_of(gatebell, owner, chief=Role.OWNER)
    give_role(gatebell, group["full_path"], keeper, Role.MAINTAINER)
    chief, own = script_of(gatebell, people["chief"]), script_of(gatebell, keeper)
    made(share(script, project, group, group_access=50))
    lowered = share(own, project, group, group_access=30)
    ended = own.send_request("DELETE", f"{path_of(project)}/share/{group['id']}")
    for refused in (lowered, ended):
        assert refused.status_code == 403
        assert "a share with the Owner role, because your own role is Maintainer" in refused.text
    assert role_of(chief, project) == 50
    made(share(script, project, group, group_access=40))
    assert own.send_request("DELETE", f"{path_of(project)}/share/{group['id']}").status_code == 204


def test_visitors_of_a_public_project_cannot_see_its_shares(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    group, _ = team_of(gatebell, owner)
    project = make_project(gatebell, owner, visibility="public")
    made(share(script_of(gatebell, owner), project, group))
    shown = made(script_of(gatebell).send_request("GET", path_of(project)), 200)
    assert "shared_with_groups" not in shown
    listed = script_of(gatebell).send_request("GET", f"/projects?search={shown['path']}")
    assert group["full_path"] not in listed.text


def test_custom_roles_of_the_group_do_not_apply_to_shares(gatebell: LiveGatebell) -> None:
    owner, boss = make_user(gatebell), script_of(gatebell, get_shared_administrator(gatebell))
    group, people = team_of(gatebell, owner, guest=Role.GUEST)
    role = {"name": group["path"], "base_access_level": 10, str(Ability.READ_ALERTS): True}
    number = made(boss.send_request("POST", "/member_roles", json=role))["id"]
    script, guest = script_of(gatebell, owner), people["guest"]
    gift = {"access_level": 10, "member_role_id": number}
    member = f"/groups/{group['id']}/members/{find_user_id(gatebell, guest)}"
    made(script.send_request("PUT", member, json=gift), 200)
    project = make_project(gatebell, owner)
    made(share(script, project, group, group_access=50))
    alerts = f"{path_of(project)}/alert_management_alerts"
    assert script_of(gatebell, guest).send_request("GET", alerts).status_code == 403
    (shown,) = [each for each in listed(script, project) if each["username"] == guest.username]
    assert "member_role" not in shown


def test_a_share_ends_when_its_group_is_deleted(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, keeper=Role.MAINTAINER)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    made(share(script, project, group))
    made(script.send_request("DELETE", f"/groups/{group['id']}"), 202)
    assert role_of(script_of(gatebell, people["keeper"]), project) is None
    assert made(script.send_request("GET", path_of(project)), 200)["shared_with_groups"] == []


@pytest.mark.long
@pytest.mark.both_databases
def test_the_page_of_members_starts_and_ends_a_share(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, keeper=Role.MAINTAINER)
    project, browser = make_project(gatebell, owner), signed_in(gatebell, owner)
    url = f"{gatebell.url}/{project}/-/settings/members"
    page = browser.get(url)
    refused = submit(browser, page, form_with(page, "most"), group="nowhere", most="30")
    assert refused.status_code == 422
    assert "Group not found" in refused.text
    assert form_with(refused, "most").value("group") == "nowhere"
    submit(browser, refused, form_with(refused, "most"), group=group["full_path"], most="30")
    page = browser.get(url)
    assert "Shared with groups" in page.text
    row = page.text.partition(people["keeper"].username)[2].partition("</tr>")[0]
    assert "Developer" in row
    assert f"/groups/{group['full_path']}/-/members" in row
    seen = signed_in(gatebell, people["keeper"]).get(url)
    assert "Shared with groups" in seen.text
    assert "Share with a group" not in seen.text
    submit(browser, page, form_to(page, f"/groups/{group['id']}/remove"))
    assert "Shared with groups" not in browser.get(url).text


@pytest.mark.both_databases
def test_a_transfer_keeps_roles_from_shares(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, keeper=Role.MAINTAINER)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    give_role(gatebell, project.partition("/")[0], people["keeper"], Role.GUEST)
    there = new_group(script)["full_path"]
    url, browser = f"{gatebell.url}/{project}/-/settings/transfer", signed_in(gatebell, owner)
    assert people["keeper"].username in browser.get(url, params={"to": there}).text
    made(share(script, project, group))
    assert people["keeper"].username not in browser.get(url, params={"to": there}).text


def test_members_of_a_shared_group_can_be_paged(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    group, people = team_of(gatebell, owner, keeper=Role.MAINTAINER)
    project, script = make_project(gatebell, owner), script_of(gatebell, owner)
    policies = f"{path_of(project)}/escalation_policies"
    policy = {"name": "Night", "steps": [f"0s user:{people['keeper'].username}"]}
    assert script.send_request("POST", policies, json=policy).status_code == 400
    made(share(script, project, group))
    made(script.send_request("POST", policies, json=policy))
