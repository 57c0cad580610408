"""Projects: visibility, creation and membership."""

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import alice, make_project, make_user, signed_in, unique
from tests.support.accounts.team import browser_of, find_member_id, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")


def status(browser: requests.Session, gatebell: LiveGatebell, path: str) -> int:
    return browser.get(f"{gatebell.url}/{path}", allow_redirects=False).status_code


@pytest.mark.long
def test_a_private_project_is_visible_only_to_members(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    pages = (project, f"{project}/-/alerts", f"{project}/-/settings/members", project.upper())
    for page in pages:
        assert status(browser_of(gatebell, project, None), gatebell, page) == 404
        # Anonymous visitors must sign in for every path, so they cannot find out which paths exist.
        assert status(gatebell.http(), gatebell, page) == 302
        assert status(browser_of(gatebell, project, Role.OWNER), gatebell, page) == 200
    assert status(gatebell.http(), gatebell, f"{project}-that-is-not") == 302
    assert status(browser_of(gatebell, project, Role.GUEST), gatebell, project) == 200


@pytest.mark.long
def test_paths_with_a_dot_are_valid(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    for path in (f"{group}/shop.v2", unique("crew.io")):
        kind = "projects" if "/" in path else "groups"
        gatebell.cli(kind, "create", path, "--owner", alice(gatebell).username)
        assert status(signed_in(gatebell, alice(gatebell)), gatebell, path) == 200
        for asked in (path, f"{path}-that-is-not"):
            assert status(gatebell.http(), gatebell, asked) == 302
            assert status(browser_of(gatebell, group, None), gatebell, asked) == 404
    # Invalid paths and well-known files of hosts are not found.
    for path in (f"{group}/shop.json", f"{group}/shop.git", "favicon.ico", "apple-touch-icon.png"):
        assert status(gatebell.http(), gatebell, path) == 404


@pytest.mark.parametrize(
    ("visibility", "for_strangers", "for_nobody"), [("internal", 200, 302), ("public", 200, 200)]
)
def test_users_without_a_role_see_a_project_according_to_its_visibility(
    gatebell: LiveGatebell, visibility: str, for_strangers: int, for_nobody: int
) -> None:
    endpoint = connect(gatebell, make_project(gatebell, alice(gatebell), visibility=visibility))
    endpoint.accepted(title="for the team only")
    stranger = browser_of(gatebell, endpoint.project, None)
    assert status(stranger, gatebell, endpoint.project) == for_strangers
    assert status(gatebell.http(), gatebell, endpoint.project) == for_nobody
    for browser in (stranger, gatebell.http()):
        assert "for the team only" not in browser.get(f"{gatebell.url}/{endpoint.project}").text
    assert status(stranger, gatebell, f"{endpoint.project}/-/alerts") == 403
    assert status(stranger, gatebell, f"{endpoint.project}/-/settings/members") == 403


@pytest.mark.long
@pytest.mark.both_databases
def test_developers_see_open_alerts_on_overview_and_home_page(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, name="Night shift")
    title = unique("waits for me")
    endpoint.accepted(title=title)
    overview = f"{gatebell.url}/{endpoint.project}"
    for role in (Role.DEVELOPER, Role.OWNER):
        browser = browser_of(gatebell, endpoint.project, role)
        page = browser.get(overview)
        assert title in page.text
        assert "Night shift" in page.text
        assert title in browser.get(gatebell.url).text
    reporter = browser_of(gatebell, endpoint.project, Role.REPORTER)
    assert title not in reporter.get(overview).text
    start = reporter.get(gatebell.url).text
    assert title not in start
    assert "You need the Developer role to see the alerts" in start
    assert title not in browser_of(gatebell, endpoint.project, None).get(gatebell.url).text


def test_a_maintainer_of_a_group_creates_a_project_and_owns_it(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    browser = browser_of(gatebell, group, Role.MAINTAINER)
    page = browser.get(f"{gatebell.url}/projects/new")
    form = form_with(page, "visibility")
    answer = submit(browser, page, form, group=group, name="new-shop", visibility="private")
    assert answer.headers["Location"] == f"/{group}/new-shop/-/settings/integrations/new/tools"
    assert status(browser, gatebell, f"{group}/new-shop/-/settings/general") == 200
    again = submit(browser, page, form, group=group, name="New-Shop", visibility="private")
    assert again.status_code == 422
    assert "already exists" in again.text


@pytest.mark.long
def test_invalid_projects_are_rejected(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/projects/new")
    names = ("", "with space", "sub/path", "x" * 101, "ends.json", "-", "\x00")
    for changes in (
        *({"name": name} for name in names),
        {"visibility": "secret"},
        {"group": "nobody-knows-it"},
    ):
        given = {"group": group, "name": "fine", "visibility": "private", **changes}
        answer = submit(browser, page, form_with(page, "visibility"), **given)
        assert answer.status_code == 422, changes
        assert status(browser, gatebell, f"{group}/fine") == 404, changes


@pytest.mark.long
def test_a_member_is_added_changed_and_removed(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    newcomer = make_user(gatebell, name="newcomer")
    theirs = signed_in(gatebell, newcomer)
    assert status(theirs, gatebell, project) == 404
    browser = browser_of(gatebell, project, Role.OWNER)
    address = f"{gatebell.url}/{project}/-/settings/members"
    page = browser.get(address)
    form = form_with(page, "user")
    answer = submit(browser, page, form, user=newcomer.username, role="10")
    assert answer.status_code == 302
    assert status(theirs, gatebell, f"{project}/-/alerts") == 403
    page = browser.get(address)
    change = form_to(page, f"/{find_member_id(gatebell, project, newcomer)}/role")
    assert submit(browser, page, change, role="30").status_code == 302
    assert status(theirs, gatebell, f"{project}/-/alerts") == 200
    page = browser.get(address)
    assert page.text.count(f"@{newcomer.username}") == 1
    row = page.text.partition(f"@{newcomer.username}")[2]
    removal = f"/members/{row.partition('/-/settings/members/')[2].partition('/')[0]}/remove"
    assert submit(browser, page, form_to(page, removal)).status_code == 302
    assert status(theirs, gatebell, project) == 404


def test_a_member_cannot_assign_a_role_above_their_own(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(f"{gatebell.url}/{project}/-/settings/members")
    assert '<option value="50"' not in page.text
    stranger = person_for(gatebell, None)
    form = form_with(page, "user")
    for role in ("50", "0", "99", "x", "40 "):
        answer = submit(browser, page, form, user=stranger.username, role=role)
        assert answer.status_code == (302 if role == "40 " else 422), role


def test_a_user_without_an_account_cannot_be_added(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.OWNER)
    page = browser.get(f"{gatebell.url}/{project}/-/settings/members")
    for user in ("nobody-by-that-name", "", "\x00", "<b>", "x" * 400):
        answer = submit(browser, page, form_with(page, "user"), user=user, role="30")
        assert answer.status_code == 422
        assert "<b>" not in answer.text


def test_members_of_other_projects_cannot_be_removed(gatebell: LiveGatebell) -> None:
    mine, other = (make_project(gatebell, alice(gatebell)) for _ in range(2))
    browser = browser_of(gatebell, mine, Role.OWNER)
    page = browser.get(f"{gatebell.url}/{mine}/-/settings/members")
    token = {"csrf_token": form_with(page, "user").value("csrf_token")}
    for number in ("1", "0", "9" * 19, "9" * 40):
        url = f"{gatebell.url}/{mine}/-/settings/members/{number}/remove"
        assert browser.post(url, data=token).status_code in {404, 405}
    assert status(signed_in(gatebell, alice(gatebell)), gatebell, other) == 200


NOWHERE = (
    *("..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e", "%00", "a%00b/c", "%ff%fe", "{{7*7}}"),
    *("'%20OR%201=1", "x/" * 1_000, "-/-/-", "a//b"),
)


@pytest.mark.long
@pytest.mark.both_databases
def test_unknown_paths_are_not_found(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    for path in NOWHERE:
        for page in (path, f"{path}/-/alerts", f"{path}/-/settings/members"):
            answer = browser.get(f"{gatebell.url}/{page}")
            assert answer.status_code == 404, page
            assert "Traceback" not in answer.text, page
