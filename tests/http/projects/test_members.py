"""Members: changes of roles, removal, and protected members."""

import pytest
import requests

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.support.accounts.administration import get_shared_administrator, submit_form_by_field
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.memberships import all_members
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    set_state,
    signed_in,
    unique,
)
from tests.support.accounts.team import browser_of, find_member_id, give_role, person_for
from tests.support.database.audit_log import get_event_about_user, list_events_about_user
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.long
def test_maintainers_cannot_add_or_remove_owners(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    browser = browser_of(gatebell, group, Role.MAINTAINER)
    page = browser.get(f"{gatebell.url}/groups/{group}/-/members")
    values = {"user": person_for(gatebell, None).username, "role": "50"}
    assert submit(browser, page, form_with(page, "user"), **values).status_code == 422
    assert_out_of_reach(gatebell, browser, page, group, alice(gatebell))


def assert_out_of_reach(
    gatebell: LiveGatebell,
    browser: requests.Session,
    page: requests.Response,
    namespace: str,
    person: Person,
) -> None:
    """Check that neither the page nor a direct request changes or removes a member."""
    number = find_member_id(gatebell, namespace, person)
    assert not any(f"/{number}/" in form.action for form in forms_in(page.text))
    added = submit(browser, page, form_with(page, "user"), user=person.username, role="10")
    assert added.status_code == 422
    assert "is already a member" in added.text
    token = form_with(page, "user").value("csrf_token")
    for action, values in (("role", {"role": "10"}), ("remove", {})):
        address = f"{page.url}/{number}/{action}"
        assert browser.post(address, data={"csrf_token": token, **values}).status_code == 403
    assert find_member_id(gatebell, namespace, person) == number
    assert roles_in(gatebell, namespace)[person.username] == Role.OWNER


def roles_in(gatebell: LiveGatebell, namespace: str) -> dict[str, Role]:
    """Return the roles of all members of a namespace."""
    with database_of(gatebell) as session:
        members = all_members(
            get_namespace(namespace, session=session),
            session=session,
            today=now().date(),
        )
    return {member.username: member.role for member in members}


@pytest.mark.long
@pytest.mark.parametrize("namespace", ["group", "project"])
def test_a_role_is_changed_in_the_list_and_logged(gatebell: LiveGatebell, namespace: str) -> None:
    project = make_project(gatebell, alice(gatebell))
    path = project if namespace == "project" else project.partition("/")[0]
    newcomer = make_user(gatebell, name="newcomer")
    give_role(gatebell, path, newcomer, Role.REPORTER)
    owner = signed_in(gatebell, alice(gatebell))
    address = (
        f"/{path}/-/settings/members" if namespace == "project" else f"/groups/{path}/-/members"
    )
    number = find_member_id(gatebell, path, newcomer)
    page = owner.get(gatebell.url + address, params={"search": "newc"})
    form = form_to(page, f"/{number}/role")
    assert form.value("role") == "20"
    answer = submit(owner, page, form, role="40")
    # The redirect leads to the same row of the same search.
    assert answer.headers["Location"].endswith(f"{address}?search=newc#member-{number}")
    assert f'id="member-{number}"' in page.text
    assert roles_in(gatebell, path)[newcomer.username] == Role.MAINTAINER
    event = get_event_about_user(gatebell, newcomer, EventKind.MEMBER_CHANGED)
    assert event.details == {
        "username": newcomer.username, "role": "Maintainer", "before": "Reporter"
    }  # fmt: skip
    assert "now has the Maintainer role" in owner.get(gatebell.url + address).text
    # Invalid roles change nothing.
    for role in ("", "king", "99"):
        answer = submit(owner, page, form, role=role)
        assert answer.status_code == 422
    # The URL of the rejected form leads back to the list.
    assert owner.get(answer.url.partition("?")[0]).url == gatebell.url + address
    assert roles_in(gatebell, path)[newcomer.username] == Role.MAINTAINER


@pytest.mark.both_databases
def test_the_last_owner_cannot_lower_their_role(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    owner = signed_in(gatebell, alice(gatebell))
    page = owner.get(f"{gatebell.url}/groups/{group}/-/members")
    number = find_member_id(gatebell, group, alice(gatebell))
    answer = submit(owner, page, form_to(page, f"/{number}/role"), role="40")
    assert answer.status_code == 422
    assert "must have an owner" in answer.text
    # A locked owner does not count as another owner.
    locked = make_user(gatebell, name="locked")
    give_role(gatebell, group, locked, Role.OWNER)
    set_state(gatebell, locked, "locked")
    answer = submit(owner, page, form_to(page, f"/{number}/remove"))
    assert answer.status_code == 422


@pytest.mark.long
def test_errors_do_not_reveal_which_addresses_have_an_account(gatebell: LiveGatebell) -> None:
    founder = make_user(gatebell, name="founder")
    group = make_project(gatebell, founder).partition("/")[0]
    browser = signed_in(gatebell, founder)
    page = browser.get(f"{gatebell.url}/groups/{group}/-/members")
    form, person = form_with(page, "user"), make_user(gatebell, name="hidden")
    for address in (person.email, person.email.upper(), "nobody@people.example", "@a@b.example"):
        answer = submit(browser, page, form, user=address, role="30")
        assert answer.status_code == 422
        assert "Use the username to add a member" in answer.text
        assert "not found" not in answer.text
    # The username is accepted, also with a leading @.
    added = submit(browser, page, form, user=f"@{person.username}", role="30")
    assert added.status_code == 302


def test_an_administrator_can_add_members_by_email_address(
    gatebell: LiveGatebell,
) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    person = make_user(gatebell, name="hidden")
    path = f"/groups/{group}/-/members"
    assert (
        submit_form_by_field(gatebell, path, "user", user=person.email, role="30").status_code
        == 302
    )
    assert roles_in(gatebell, group)[person.username] == Role.DEVELOPER


def test_a_role_below_an_inherited_role_is_shown_and_can_be_removed(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    person = make_user(gatebell, name="twice")
    give_role(gatebell, project, person, Role.REPORTER)
    give_role(gatebell, project.partition("/")[0], person, Role.MAINTAINER)
    owner = signed_in(gatebell, alice(gatebell))
    page = owner.get(f"{gatebell.url}/{project}/-/settings/members")
    row = page.text.partition(f"@{person.username}")[2].partition("</tr>")[0]
    assert "Maintainer" in row
    assert "Direct role: Reporter" in row
    number = find_member_id(gatebell, project, person)
    assert submit(owner, page, form_to(page, f"/{number}/remove")).status_code == 302
    row = owner.get(page.url).text.partition(f"@{person.username}")[2].partition("</tr>")[0]
    assert "Maintainer" in row
    assert "Direct role: Reporter" not in row


def custom_role(gatebell: LiveGatebell, base: Role) -> dict[str, object]:
    """Create a custom role that can read alerts."""
    body = {"name": unique("On-call"), "base_access_level": int(base), "read_alerts": True}
    made = api_caller(gatebell, get_shared_administrator(gatebell), "/member_roles").done(
        "POST", json=body, status=201
    )
    assert isinstance(made, dict)
    return made


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G6")
def test_a_custom_role_is_assigned_and_removed_on_the_page(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    role, newcomer = custom_role(gatebell, Role.GUEST), make_user(gatebell, name="newcomer")
    value, named = f"custom-{role['id']}", f"{role['name']} (Guest)"
    owner, theirs = signed_in(gatebell, alice(gatebell)), signed_in(gatebell, newcomer)
    alerts = f"{gatebell.url}/{project}/-/alerts"
    page = owner.get(f"{gatebell.url}/{project}/-/settings/members")
    assert f'<option value="{value}">{named}</option>' in page.text
    answer = submit(owner, page, form_with(page, "user"), user=newcomer.username, role=value)
    assert answer.status_code == 302
    assert theirs.get(alerts).status_code == 200
    page = owner.get(page.url)
    assert f"{newcomer.username} now has the {role['name']} role in {project}." in page.text
    form = form_to(page, f"/{find_member_id(gatebell, project, newcomer)}/role")
    assert form.value("role") == value

    # The base role replaces the custom role.
    assert submit(owner, page, form, role="10").status_code == 302
    assert theirs.get(alerts).status_code == 403
    # The custom role replaces another role in one step.
    assert submit(owner, page, form, role="30").status_code == 302
    assert submit(owner, page, form, role=value).status_code == 302
    assert roles_in(gatebell, project)[newcomer.username] == Role.GUEST
    assert theirs.get(alerts).status_code == 200
    events = reversed(list_events_about_user(gatebell, newcomer, EventKind.MEMBER_CHANGED))
    noted = [each.details.get("member_role") or each.details["role"] for each in events]
    assert noted == [role["name"], "none", "Developer", "Guest", role["name"]]
    # A deleted custom role changes nothing.
    assert submit(owner, page, form, role="custom-999999999").status_code == 422
    assert theirs.get(alerts).status_code == 200


@pytest.mark.spec("G6")
def test_custom_roles_are_offered_only_to_maintainers(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    low, high = custom_role(gatebell, Role.GUEST), custom_role(gatebell, Role.MAINTAINER)
    subgroup = f"{group}/below"
    gatebell.cli("groups", "create", subgroup, "--owner", alice(gatebell).username)
    browser = browser_of(gatebell, subgroup, Role.MAINTAINER)
    page = browser.get(f"{gatebell.url}/groups/{subgroup}/-/members")
    assert f"custom-{low['id']}" in page.text
    assert f"custom-{high['id']}" in page.text
    developer = browser_of(gatebell, subgroup, Role.DEVELOPER)
    assert "custom-" not in developer.get(page.url).text
