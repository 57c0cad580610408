"""Schedules, channels, policies and routes of groups: in the API, on pages and in commands."""

import re
from urllib.parse import urlsplit

import pytest

from domain.access.roles import Role
from tests.http.paging.escalations.test_escalation_pages import words
from tests.support.accounts.administration import find_last_event
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, alice, make_project, make_user, signed_in, unique
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.both_databases
ABOVE = {"include_ancestor_groups": "true"}


def team_of(gatebell: LiveGatebell) -> tuple[str, str, ApiCaller, ApiCaller, Person]:
    """Return Alice's group and its project, API callers for both, and the group's developer Bob."""
    project = make_project(gatebell, alice(gatebell))
    group = project.rpartition("/")[0]
    bob = make_user(gatebell, name="bob")
    give_role(gatebell, group, bob, Role.DEVELOPER)
    below = api_caller(gatebell, alice(gatebell), f"/projects/{project.replace('/', '%2F')}")
    return group, project, api_caller(gatebell, alice(gatebell), f"/groups/{group}"), below, bob


@pytest.mark.spec("J1", "K1")
def test_the_api_lists_resources_of_ancestor_groups_on_request(gatebell: LiveGatebell) -> None:
    group, project, call, below, bob = team_of(gatebell)
    name = unique("Primary")
    given = {"name": name, "time_zone": "UTC", "rotations": [f"weekly {bob.username} mon 09:00"]}
    schedule = call.done("POST", "/on_call/schedules", status=201, json=given)
    assert schedule["group"] == group
    at = f"{gatebell.url}/groups/{group}/-/on_call/schedules/{schedule['id']}"
    assert schedule["web_url"] == at
    room = {"type": "email", "address": "room@team.example", "label": "Room"}
    channel = call.done("POST", "/notification_channels", status=201, json=room)
    steps = [f"0s schedule:{name}", "5m channel:Room"]
    night = {"name": unique("Night"), "steps": steps, "default": True}
    policy = call.done("POST", "/escalation_policies", status=201, json=night)
    made = find_last_event(gatebell, policy["name"])
    assert (made.details["group"], "project" in made.details) == (group, False)
    minor = {"name": "Minor", "severities": ["low"], "escalation_policy_id": None}
    route = call.done("POST", "/alert_routes", status=201, json=minor)
    for url, resource in (
        ("/on_call/schedules", schedule),
        ("/notification_channels", channel),
        ("/escalation_policies", policy),
        ("/alert_routes", route),
    ):
        assert below.done("GET", url) == []
        assert below.done("GET", url, params=ABOVE) == call.done("GET", url) == [resource]
        assert resource["group"] == group
        below.refused("GET", f"{url}/{resource['id']}", status=404)
    (now,) = below.done("GET", "/on_call/schedules/current", params=ABOVE)
    assert (now["group"], [each["username"] for each in now["now"]["users"]]) == (
        group,
        [bob.username],
    )
    # Of two schedules with the same name, the nearest is used. A route can use a group's policy.
    own = below.done("POST", "/on_call/schedules", status=201, json={**given, "rotations": []})
    steps = below.done(
        "POST", "/escalation_policies", status=201, json={**night, "default": False}
    )["steps"]
    assert steps[0]["targets"][0]["id"] == own["id"]
    to_group = {"name": "Major", "escalation_policy_id": policy["id"]}
    assert below.done("POST", "/alert_routes", status=201, json=to_group)["escalation_policy_id"]
    others = api_caller(gatebell, make_user(gatebell), f"/groups/{group}")
    others.refused("GET", "/on_call/schedules", status=404)
    refused = api_caller(gatebell, bob, f"/groups/{group}")
    refused.refused("POST", "/on_call/schedules", status=403, json=given)

    listed = gatebell.cli("escalations", "list", project, "--include-ancestor-groups")
    assert {each["group"] for each in listed["escalation_policies"]} == {group, None}
    assert gatebell.cli("schedules", "show", group, name) == schedule
    assert gatebell.cli("channels", "list", group)["total"] == 1


@pytest.mark.long
@pytest.mark.spec("J1")
def test_pages_of_a_project_show_resources_of_its_group(gatebell: LiveGatebell) -> None:
    group, project, call, below, bob = team_of(gatebell)
    me = alice(gatebell)
    browser, url = signed_in(gatebell, me), f"{gatebell.url}/groups/{group}/-"
    assert f"/groups/{group}/-/on_call" in browser.get(f"{gatebell.url}/{group}").text
    page = browser.get(f"{url}/on_call/schedules/new")
    page = submit(browser, page, form_with(page, "name"), name="Primary", time_zone="UTC")
    page = browser.get(f"{gatebell.url}{page.headers['Location']}")
    page = submit(
        browser, page, form_with(page, "users-0"), **{"users-0": me.username}, unit="days"
    )
    assert page.status_code == 302, words(page)
    assert page.headers["Location"].startswith(f"/groups/{group}/-/on_call/schedules/")
    at = f"{gatebell.url}{page.headers['Location']}"
    page = browser.get(f"{at}/overrides/new")
    week = {"starts_at": "2030-03-04T09:00", "ends_at": "2030-03-11T09:00"}
    page = submit(browser, page, form_with(page, "user"), user=bob.username, **week)
    assert page.status_code == 302, words(page)
    calendar = browser.get(at)
    secret = submit(browser, calendar, form_to(calendar, "/calendar"))
    feed = re.findall(r"http://[^\s\"<]+\.ics", secret.text)[0]
    assert f"Primary ({group})" in browser.get(feed).text

    page = browser.get(f"{url}/settings/channels?service=email")
    room = {"address": "room@team.example", "label": "Room"}
    assert submit(browser, page, form_with(page, "address"), **room).status_code == 302
    page = browser.get(f"{url}/on_call/policies/new")
    # The first policy pages the first schedule by default.
    answer = submit(browser, page, form_with(page, "name"), name="Night", do="save")
    assert answer.status_code == 302, words(answer)
    page = browser.get(f"{url}/on_call/routes/new")
    answer = submit(browser, page, form_with(page, "name"), name="Minor", policy="nobody")
    assert answer.status_code == 302, words(answer)
    connect(gatebell, project).post(b'{"title": "Disk full"}')
    assert "Disk full" in words(browser.get(f"{url}/on_call/routes/dry_run"))

    below_url = f"{gatebell.url}/{project}/-"
    for place, shown in (
        ("on_call", f"Primary from {group}"),
        ("on_call/policies", f"Night from {group}"),
        ("on_call/routes", f"Minor from {group}"),
        ("settings/channels", f"Room from {group}"),
    ):
        page = browser.get(f"{below_url}/{place}")
        assert shown in words(page), words(page)
        assert f'href="/groups/{group}/-/{place}' in page.text
    assert f"Primary from {group}" in words(browser.get(f"{gatebell.url}/{project}"))
    form = browser.get(f"{below_url}/on_call/policies/new").text
    assert f"Primary (from {group})" in form
    assert f"Room (from {group})" in form

    # A schedule that a project below uses cannot be deleted, and the error names the policy.
    own = {"name": "Own", "steps": ["0s schedule:Primary"]}
    below.done("POST", "/escalation_policies", status=201, json=own)
    assert f"Own of {project}" in words(browser.get(at))
    (policy,) = call.done("GET", "/escalation_policies")
    (found,) = call.done("GET", "/alert_routes")
    call.done("DELETE", f"/alert_routes/{found['id']}", status=204)
    call.done("DELETE", f"/escalation_policies/{policy['id']}", status=204)
    page = browser.get(at)
    submit(browser, page, form_to(page, f"{urlsplit(at).path}/delete"))
    assert f"The escalation policy Own of {project} pages this schedule." in words(browser.get(at))

    # A personal namespace has no schedules.
    person = api_caller(gatebell, me)
    made = person.done("POST", "/projects", status=201, json={"path": unique("mine")})
    mine = f"/groups/{made['namespace']['id']}"
    sent = {"name": "Primary", "time_zone": "UTC"}
    assert "personal namespace" in person.refused(
        "POST", f"{mine}/on_call/schedules", status=403, json=sent
    )
