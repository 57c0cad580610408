"""The page “On call”: shifts in all projects, cover, and how the user is paged."""

import re

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice, make_project, make_user, signed_in
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


@pytest.mark.long
def test_a_cover_is_confirmed_after_a_preview_of_its_shifts(gatebell: LiveGatebell) -> None:
    me, other = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, alice(gatebell))
    for each in (me, other):
        give_role(gatebell, project, each, Role.DEVELOPER)
    browser = signed_in(gatebell, me)
    at = f"{gatebell.url}/-/on_call"
    assert "You are not in any on-call schedule." in browser.get(at).text
    made = gatebell.cli(
        *("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC"),
        *("--rotation", f"weekly {me.username},{other.username} mon 09:00"),
        *("--rotation", f"daily {other.username} 09:00 only 10:00-11:00"),
    )
    page = browser.get(at).text
    assert re.search(r"You are on call now in <strong>|You are not on call now", page)
    assert "Send test message" not in page
    assert "No quiet hours." in page
    # The link selects its turn, and the page asks for a confirmation.
    (first, *_) = re.findall(r'href="(/-/on_call/cover\?turn=[^"]+)"', page)
    form = browser.get(gatebell.url + first)
    chosen = re.search(r'<option selected value="([^"]+@[^"]+)">My shift', form.text)
    assert chosen
    asked = submit(
        browser, form, form_to(form, "/-/on_call/cover"), user=other.username, what=chosen[1]
    )
    assert "Hand over these shifts" in asked.text
    assert "Find cover" in asked.text
    overrides = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    assert f"covers <bdi>{me.username}</bdi>" not in browser.get(overrides).text
    # With other shifts than in the preview, a new confirmation is necessary.
    again = submit(
        browser,
        asked,
        form_to(asked, "/-/on_call/cover"),
        what=str(made["id"]),
        starts_at="2090-01-01T00:00",
        ends_at="2090-02-01T00:00",
    )
    assert "Hand over these shifts" in again.text
    done = submit(browser, again, form_to(again, "/-/on_call/cover"), what=chosen[1])
    assert "Hand over these shifts" in done.text
    done = submit(browser, done, form_to(done, "/-/on_call/cover"))
    assert f"{other.username} covers you." in browser.get(at).text
    assert f"covers <bdi>{me.username}</bdi>" in browser.get(overrides).text
    # A cover without a turn needs times.
    form = browser.get(f"{at}/cover?schedule={made['id']}")
    refused = submit(browser, form, form_to(form, "/-/on_call/cover"), user=other.username)
    assert refused.status_code == 422
    assert "Enter a start, or choose one of your shifts." in refused.text


def test_home_lists_projects_whose_new_alerts_page_no_one(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project = make_project(gatebell, owner)
    browser = signed_in(gatebell, owner)
    home = browser.get(gatebell.url).text
    assert "do not page anyone." in home
    assert f'href="/{project}/-/on_call/policies">Set up paging</a>' in home
    gatebell.cli(
        *("escalations", "create", project, "--name", "All", "--step", f"0m user:{owner.username}"),
        "--default",
    )
    assert "do not page anyone." not in browser.get(gatebell.url).text


def test_the_turn_of_the_only_user_of_a_rotation_has_no_end(gatebell: LiveGatebell) -> None:
    me = make_user(gatebell)
    project = make_project(gatebell, me)
    rotation = ("--rotation", f"weekly {me.username} mon 09:00")
    made = gatebell.cli(
        *("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC", *rotation)
    )
    browser = signed_in(gatebell, me)
    page = words(browser.get(f"{gatebell.url}/-/on_call"))
    assert f"You are on call now in Primary ({project})." in page
    assert "no end within 14 weeks" in page
    assert "You cannot be paged because you have no confirmed contact." in page
    schedule = browser.get(f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}")
    assert "every week on Mon at 09:00, from" not in words(schedule)
    # In the API, a flag distinguishes the end of the search from the end of a turn.
    other = make_user(gatebell)
    give_role(gatebell, project, other, Role.DEVELOPER)
    rotation = ("--rotation", f"weekly {other.username},{me.username} mon 09:00")
    gatebell.cli(
        "schedules", "create", project, "--name", "Shared", "--time-zone", "UTC", *rotation
    )
    found = api_caller(gatebell, me, "/user/on_call").done("GET")["schedules"]
    flags = {each["name"]: {turn["may_continue"] for turn in each["turns"]} for each in found}
    assert flags == {"Primary": {True}, "Shared": {False}}


def test_the_on_call_page_lists_all_visible_schedules_with_the_own_ones_first(
    gatebell: LiveGatebell,
) -> None:
    owner, me, outsider = make_user(gatebell), make_user(gatebell), make_user(gatebell)
    project, hidden = make_project(gatebell, owner), make_project(gatebell, owner)
    give_role(gatebell, project, me, Role.DEVELOPER)
    give_role(gatebell, project, outsider, Role.REPORTER)
    for place, name, user in (
        (project, "A of others", owner),
        (project, "Mine", me),
        (hidden, "Secret", owner),
    ):
        gatebell.cli(
            *("schedules", "create", place, "--name", name, "--time-zone", "UTC"),
            *("--rotation", f"weekly {user.username} mon 09:00"),
        )
    gatebell.cli("schedules", "create", project, "--name", "Empty", "--time-zone", "UTC")
    answer = signed_in(gatebell, me).get(f"{gatebell.url}/-/on_call")
    assert re.search(r'href="/-/on_call" aria-current="page">On call</a>', answer.text)
    table = words(answer).partition("your own schedules first")[2]
    shown = [table.find(each) for each in ("Mine", "A of others", "Empty")]
    assert -1 not in shown
    assert shown == sorted(shown)
    assert "Alice you" in table
    assert "Nobody" in table
    assert "Secret" not in table
    # The role is not enough to see the schedules of the project.
    empty = signed_in(gatebell, outsider).get(f"{gatebell.url}/-/on_call")
    assert "No on-call schedules" in words(empty)
    home = signed_in(gatebell, outsider).get(gatebell.url).text
    links = re.findall(r'<li><a href="([^"]+)"', home[home.index('aria-label="Main"') :])
    assert links[1:3] == ["/-/alerts", "/-/on_call"]
