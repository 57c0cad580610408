"""Groups: creation, visibility and membership."""

import re

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import alice, make_project, make_user, signed_in, unique
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.long
def test_the_creator_of_a_group_becomes_its_owner(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell, name="founder")
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/groups/new")
    path = unique("Crew")
    made = submit(browser, page, form_with(page, "path"), path=f"/{path}/")
    assert made.headers["Location"] == f"/projects/new?group={path}", "who has none creates one"
    members = browser.get(f"{gatebell.url}/groups/{path}/-/members")
    assert f"@{person.username}" in members.text
    below = submit(browser, page, form_with(page, "path"), path=f"{path.lower()}/below")
    assert below.headers["Location"] == f"/{path}/below"
    assert browser.get(f"{gatebell.url}/{path}/below").status_code == 200
    again = submit(browser, page, form_with(page, "path"), path=path.upper())
    assert again.status_code == 422
    assert "already exists" in again.text


NO_GROUPS = (
    *("", "/", "a b", "a//b", "../x", "-", "-x", "oauth", "API", "users", "health.json", "x.git"),
    *("x" * 101, "é", "\x00", "nobody-knows-it/below", "{{1234567*7}}", "static", "admin"),
)


@pytest.mark.long
def test_invalid_paths_of_groups_are_rejected(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/groups/new")
    for path in NO_GROUPS:
        answer = submit(browser, page, form_with(page, "path"), path=path)
        assert answer.status_code == 422, path
        head = answer.text.partition("<form")[2].partition("csrf_token")[0]
        assert "8641969" not in head, path


def groups_found(gatebell: LiveGatebell, browser: requests.Session, words: str) -> list[str]:
    """Return the groups that a search finds for the user of a browser."""
    page = browser.get(f"{gatebell.url}/groups", params={"search": words}).text
    return re.findall(r'<li><a href="/([^/"]+)">', page)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_group_is_visible_with_a_role_or_a_visible_project(
    gatebell: LiveGatebell,
) -> None:
    private = make_project(gatebell, alice(gatebell)).partition("/")[0]
    public = make_project(gatebell, alice(gatebell), visibility="public").partition("/")[0]
    stranger = browser_of(gatebell, private, None)
    assert stranger.get(f"{gatebell.url}/{private}").status_code == 404
    assert stranger.get(f"{gatebell.url}/groups/{private}/-/members").status_code == 404
    assert gatebell.http().get(f"{gatebell.url}/{public}").status_code == 200
    assert public in groups_found(gatebell, stranger, public)
    assert private not in groups_found(gatebell, stranger, private)
    guest = browser_of(gatebell, private, Role.GUEST)
    assert guest.get(f"{gatebell.url}/{private}").status_code == 200
    assert private in groups_found(gatebell, guest, private)


def test_a_role_in_a_group_applies_to_everything_below(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project.partition("/")[0], Role.DEVELOPER)
    assert browser.get(f"{gatebell.url}/{project}/-/alerts").status_code == 200
    assert browser.get(f"{gatebell.url}/{project}/-/settings/general").status_code == 403
    # The higher role applies.
    give_role(gatebell, project, person_for(gatebell, Role.DEVELOPER), Role.GUEST)
    assert browser.get(f"{gatebell.url}/{project}/-/alerts").status_code == 200
