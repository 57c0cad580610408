"""Pages of policies and routes, without scripts, and the paging section of an alert's page."""

import re
from html import unescape

import pytest
import requests

from tests.http.paging.escalations.test_escalation_policies_api import project_of
from tests.support.accounts.people import alice, make_project, make_user, signed_in
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")


def words(page: requests.Response) -> str:
    """Return the text of a page on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_a_policy_is_created_step_by_step(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    browser, at = signed_in(gatebell, alice(gatebell)), f"{gatebell.url}/{path}/-/on_call/policies"
    assert "Alerts in this project do not page anyone." in words(browser.get(at))
    page = browser.get(f"{at}/new")
    people = dict(re.findall(r'<option value="(user:\d+)"(?: selected)?>@([^<]+)<', page.text))
    ids = {name: value for value, name in people.items()}
    me = alice(gatebell).username
    assert f'value="{ids[me]}" selected>' in page.text, "the first policy pages who creates it"
    first = {"name": "Night", "steps-0-after": "0s", "steps-0-targets-0": ids[me]}
    page = submit(browser, page, form_with(page, "name"), **first, do="add_step")
    assert page.status_code == 200
    second = {"steps-1-targets-0": ids[bob.username]}
    page = submit(browser, page, form_with(page, "name"), **second, do="add_target:1")
    assert 'name="steps-1-targets-1"' in page.text
    page = submit(browser, page, form_with(page, "name"), do="preview")
    assert (
        f"Immediately: @{me}. After 5 min: @{bob.username}. "
        "Repeats 2 times, 5 min after the last step." in words(page)
    )
    assert call.done("GET", "/escalation_policies") == []
    answer = submit(browser, page, form_with(page, "name"), do="save", **{"steps-1-after": "10m"})
    assert answer.status_code == 302, words(answer)
    (made,) = call.done("GET", "/escalation_policies")
    assert made["summary"].startswith(f"Immediately: @{me}. After 10 min: @{bob.username}.")
    assert made["default"] is True, "the first policy pages without a further step"
    call.done("PUT", f"/escalation_policies/{made['id']}", json={"default": False})
    listed = browser.get(at)
    assert "Policy Night created. It applies to new alerts." in words(listed)
    told = f"This policy would not reach everyone now: @{me} has no confirmed contact;"
    assert told in words(listed)
    assert f"After 10 min: @{bob.username}." in words(listed)
    assert "There is no default policy" in words(listed)

    page = browser.get(f"{at}/{made['id']}")
    answer = submit(browser, page, form_with(page, "name"), do="remove_step:0")
    answer = submit(
        browser, answer, form_with(answer, "name"), do="save", is_default="y", repeats="0"
    )
    (made,) = call.done("GET", "/escalation_policies")
    assert made["summary"] == f"After 10 min: @{bob.username}. No repeats."
    assert made["default"] is True


def test_a_policy_can_turn_off_retriggering_of_critical_alerts(
    gatebell: LiveGatebell,
) -> None:
    path, call, bob = project_of(gatebell)
    night = {"name": "Night", "steps": [f"0s user:{bob.username}"]}
    made = call.done("POST", "/escalation_policies", status=201, json=night)
    browser = signed_in(gatebell, alice(gatebell))
    at = f"{gatebell.url}/{path}/-/on_call/policies/{made['id']}"
    for given, expected in (({}, True), ({"retrigger_when_critical": None}, False), ({}, False)):
        page = browser.get(at)
        answer = submit(browser, page, form_with(page, "name"), do="save", **given)
        assert answer.status_code == 302, words(answer)
        (shown,) = call.done("GET", "/escalation_policies")
        assert shown["retrigger_when_critical"] is expected
    shown = words(browser.get(f"{gatebell.url}/{path}/-/on_call/policies"))
    assert "An acknowledged alert that becomes critical stays acknowledged." in shown
    policy = ("escalations", "change", path, "Night")
    assert gatebell.cli(*policy, "--retrigger-when-critical")["retrigger_when_critical"] is True
    changed = gatebell.cli(*policy, "--no-retrigger-when-critical")
    assert changed["retrigger_when_critical"] is False


@pytest.mark.both_databases
def test_a_rejected_policy_does_not_change_the_default(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    night = {"name": "Night", "steps": [f"0s user:{bob.username}"], "default": True}
    call.done("POST", "/escalation_policies", status=201, json=night)
    browser, at = signed_in(gatebell, alice(gatebell)), f"{gatebell.url}/{path}/-/on_call/policies"
    page = browser.get(f"{at}/new")
    form = form_with(page, "name")
    (found,) = set(re.findall(rf'value="(user:\d+)"[^>]*>@{bob.username}<', page.text))
    wanted = {"name": "Night", "is_default": "y", "steps-0-targets-0": found}
    answer = submit(browser, page, form, **wanted, do="save")
    assert answer.status_code == 422
    assert "An escalation policy named Night already exists here." in words(answer)
    (kept,) = call.done("GET", "/escalation_policies")
    assert (kept["name"], kept["default"]) == ("Night", True)


@pytest.mark.long
def test_the_form_shows_errors_of_a_policy(gatebell: LiveGatebell) -> None:
    path, call, _ = project_of(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{path}/-/on_call/policies/new")
    ids = re.findall(r'<option value="(user:\d+)"', page.text)
    good = {"name": "Night", "steps-0-after": "0s", "steps-0-targets-0": ids[0]}
    for name, value, problem in (
        ("name", "", "Enter a name, such as Night."),
        ("steps-0-after", "soon", "is not a duration"),
        ("steps-0-after", "", "Enter a delay."),
        ("steps-0-targets-0", "", "choose between 1 and 20 targets"),
        ("steps-0-targets-0", "user:x", "Choose who is paged from the list."),
        ("steps-0-targets-0", "user:999999999999999999", "is not a member who can see"),
        ("repeats", "10", "Enter a number from 0 to 9."),
        ("repeat_pause", "1s", "between 1 minute and 24 hours"),
        ("repeat_pause", "", "Enter a pause, such as 5m."),
    ):
        given = {**good, name: value}
        answer = submit(browser, page, form_with(page, "name"), do="save", **given)
        assert answer.status_code == 422, given
        assert problem in words(answer)
        assert "{" not in words(answer), "no value of the program is shown"
    assert call.done("GET", "/escalation_policies") == []


@pytest.mark.long
@pytest.mark.spec("J1")
def test_routes_are_created_moved_and_deleted(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    policy = call.done(
        "POST",
        "/escalation_policies",
        status=201,
        json={"name": "Night", "steps": [f"0s user:{bob.username}"], "default": True},
    )
    browser, at = signed_in(gatebell, alice(gatebell)), f"{gatebell.url}/{path}/-/on_call/routes"
    for name, chosen in (("Tests", "nobody"), ("Db", str(policy["id"]))):
        page = browser.get(f"{at}/new")
        given = {"name": name, "policy": chosen, "environments": "test-*\nci", "labels": 'a="b"'}
        answer = submit(browser, page, form_with(page, "name"), severities="critical", **given)
        assert answer.status_code == 302, words(answer)
    shown = words(browser.get(at))
    assert 'Critical alerts in environment test-* or ci with a="b" do not page anyone.' in shown
    assert "All other alerts go to the default policy, Night" in shown
    tests, db = call.done("GET", "/alert_routes")
    page = browser.get(at)
    token = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
    assert token is not None
    moved = browser.post(
        f"{at}/{db['id']}/move",
        data={"csrf_token": token[1], "to": "up"},
        headers={"Referer": at},
    )
    assert "Route Db is now number 1." in words(moved)
    page = browser.get(f"{at}/{tests['id']}")
    bad = submit(browser, page, form_with(page, "name"), labels="a=")
    assert bad.status_code in {302, 422}
    bad = submit(browser, page, form_with(page, "name"), labels="team")
    assert bad.status_code == 422
    gone = browser.post(
        f"{at}/{tests['id']}/delete", data={"csrf_token": token[1]}, headers={"Referer": at}
    )
    assert "Route Tests deleted." in words(gone)
    assert [each["name"] for each in call.done("GET", "/alert_routes")] == ["Db"]
    ran = browser.get(f"{at}/dry_run?days=30")
    assert "No alerts in this period" in words(ran)
    assert browser.get(f"{at}/dry_run?days=8").status_code == 400
    deleting = browser.post(
        f"{gatebell.url}/{path}/-/on_call/policies/{policy['id']}/delete",
        data={"csrf_token": token[1]},
        headers={"Referer": at},
    )
    assert "The route Db uses this policy." in words(deleting)


@pytest.mark.long
def test_the_page_of_an_alert_explains_why_no_user_is_paged(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    endpoint = connect(gatebell, path)
    endpoint.accepted(title="Disk")
    browser = signed_in(gatebell, alice(gatebell))
    alert = f"{gatebell.url}/{path}/-/alerts/1"
    shown = words(browser.get(alert))
    assert shown.count("This project has no escalation policy") == 1
    assert "Set up paging" in shown
    assert "New alerts in this project do not page anyone." in words(
        browser.get(f"{gatebell.url}/{path}")
    )
    body = {"name": "Night", "steps": [f"0s user:{bob.username}"], "default": True}
    call.done("POST", "/escalation_policies", status=201, json=body)
    shown = words(browser.get(alert))
    assert "Policy: Night" not in shown
    assert "opened before the project had an escalation policy" in shown
    assert "resolve it: its next report then opens a new alert." in shown
    assert "Page a person" in shown
    endpoint.accepted(title="Fan", fingerprint="fan", end_time="2026-11-01T10:00:00Z")
    shown = words(browser.get(f"{gatebell.url}/{path}/-/alerts/2"))
    assert "Nobody was paged because the alert was resolved when it arrived." in shown


def test_the_only_member_of_a_project_can_page_no_one_else(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    path = make_project(gatebell, owner)
    connect(gatebell, path).accepted(title="Disk")
    shown = words(signed_in(gatebell, owner).get(f"{gatebell.url}/{path}/-/alerts/1"))
    assert "Snooze" in shown
    assert "Page a person" not in shown
