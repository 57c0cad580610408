"""Tests that administrators with an old sign-in can read but cannot change anything."""

import re
from datetime import timedelta
from functools import cache
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from sqlalchemy import select, update

from domain.access.roles import Role
from models import PersonalAccessToken, SignIn, User
from tests.http.admin.test_admin_access import admin_addresses, csrf_token, wrong_answers
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    open_browser,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.addresses import listed_addresses
from tests.support.wire.html_forms import form_with, submit

TOKENS = "/-/user_settings/access_tokens"
AGAIN = (302, "/users/sign_in?again=yes")


@cache
def administrator(gatebell: LiveGatebell) -> Person:
    """An administrator whose sign-ins are all old."""
    return make_user(gatebell, name="ruth", admin=True)


def old_browser(gatebell: LiveGatebell, person: Person) -> requests.Session:
    """Return a browser in which a user signed in two days ago."""
    browser = open_browser(gatebell, person)
    long_ago = now() - timedelta(days=2)
    with database_of(gatebell) as session:
        mine = select(User.id).where(User.username == person.username)
        session.execute(update(SignIn).where(SignIn.user_id.in_(mine)).values(created_at=long_ago))
    return browser


def tokens_of(gatebell: LiveGatebell, person: Person) -> int:
    with database_of(gatebell) as session:
        owner = find_user_id(gatebell, person)
        rows = select(PersonalAccessToken.id).where(
            PersonalAccessToken.user_id == owner, PersonalAccessToken.revoked_at.is_(None)
        )
        return len(session.scalars(rows).all())


def test_changes_below_admin_need_a_recent_sign_in(gatebell: LiveGatebell) -> None:
    browser = old_browser(gatebell, administrator(gatebell))
    sent = {"csrf_token": csrf_token(gatebell, browser)}

    def ask(path: str) -> object:
        answer = browser.post(gatebell.url + path, data=sent, allow_redirects=False)
        return answer.status_code, answer.headers.get("Location", "").partition("&")[0]

    assert wrong_answers(AGAIN, ask, admin_addresses(gatebell, "POST")) == {}
    # Forms ask for the sign-in before something is entered.
    page, recent = (
        f"{gatebell.url}/admin/users/new",
        open_browser(gatebell, make_user(gatebell, admin=True)),
    )
    assert "You signed in a while ago." in browser.get(page).text
    assert "You signed in a while ago." not in recent.get(page).text
    assert "You signed in a while ago." not in browser.get(f"{gatebell.url}/admin/audit").text


def access_addresses(group: str, project: str) -> tuple[str, ...]:
    """Return all addresses that change owners, members or access tokens."""
    there = {"group_path": group, "project_path": project}
    return tuple(
        re.sub(r"<(?:[^>:]+:)?(\w+)>", lambda part: there.get(part[1], "1"), each.rule)
        for each in listed_addresses()
        if each.method == "POST" and each.mark.startswith("a member")
        if "Owner" in each.mark or "/members" in each.rule or "/access_tokens" in each.rule
    )


@pytest.mark.long
def test_administrators_need_a_recent_sign_in_to_change_owners_members_and_tokens(
    gatebell: LiveGatebell,
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = old_browser(gatebell, administrator(gatebell))
    sent = {"csrf_token": csrf_token(gatebell, browser)}

    def ask(path: str) -> object:
        answer = browser.post(gatebell.url + path, data=sent, allow_redirects=False)
        return answer.status_code, answer.headers.get("Location", "").partition("&")[0]

    assert wrong_answers(AGAIN, ask, access_addresses(project.partition("/")[0], project)) == {}


def test_administrators_need_a_recent_sign_in_to_change_projects_without_a_role(
    gatebell: LiveGatebell,
) -> None:
    person, owner = make_user(gatebell, name="ruth", admin=True), make_user(gatebell)
    project = make_project(gatebell, owner)
    alerts, silences = (f"{gatebell.url}/{project}/-/{each}" for each in ("alerts", "silences/new"))
    browser = old_browser(gatebell, person)
    assert browser.get(alerts).status_code == 200
    sent = {"csrf_token": csrf_token(gatebell, browser), "comment": "x", "matchers": "service=db"}
    for path in ("silences/new", "settings/webhooks/new", "alerts/status"):
        answer = browser.post(
            f"{gatebell.url}/{project}/-/{path}", data=sent, allow_redirects=False
        )
        assert answer.headers.get("Location", "").startswith("/users/sign_in?again=yes"), path
    give_role(gatebell, project, person, Role.DEVELOPER)
    own = browser.post(silences, data=sent, allow_redirects=False)
    assert "again=yes" not in own.headers.get("Location", "")
    # The Developer role is not enough, since webhooks need the Maintainer role.
    above = browser.post(
        f"{gatebell.url}/{project}/-/settings/webhooks/new", data=sent, allow_redirects=False
    )
    assert above.headers.get("Location", "").startswith("/users/sign_in?again=yes")
    fresh = open_browser(gatebell, person).post(
        f"{gatebell.url}/{project}/-/settings/webhooks/new", data=sent, allow_redirects=False
    )
    assert "again=yes" not in fresh.headers.get("Location", "")


def test_owners_who_are_not_administrators_need_no_new_sign_in(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    group, _, _ = make_project(gatebell, person).partition("/")
    browser = old_browser(gatebell, person)
    page = browser.get(f"{gatebell.url}/groups/{group}/-/settings")
    form = form_with(page, "two_factor_grace_period")
    submit(browser, page, form, two_factor_grace_period="7")
    changed = browser.get(f"{gatebell.url}/groups/{group}/-/settings")
    assert form_with(changed, "two_factor_grace_period").value("two_factor_grace_period") == "7"


def test_the_new_sign_in_returns_to_the_page_of_the_change(gatebell: LiveGatebell) -> None:
    browser = old_browser(gatebell, administrator(gatebell))
    sent = {"csrf_token": csrf_token(gatebell, browser)}
    user = f"/admin/users/{find_user_id(gatebell, alice(gatebell))}"
    for path, back in (
        (f"{user}/lock", user),
        ("/admin/settings/feature-flags/tier/reset", "/admin/settings/feature-flags"),
        ("/admin/keys/rotate", "/admin/keys"),
        ("/admin/applications/new", "/admin/applications/new"),
        ("/admin/registry/rotate", "/admin/registry"),
    ):
        answer = browser.post(gatebell.url + path, data=sent, allow_redirects=False)
        assert parse_qs(urlsplit(answer.headers["Location"]).query)["next"] == [back]


def test_an_export_of_the_audit_log_needs_a_recent_sign_in(gatebell: LiveGatebell) -> None:
    stale = old_browser(gatebell, administrator(gatebell))
    fresh = open_browser(gatebell, administrator(gatebell))
    for extension in ("csv", "jsonl"):
        url = f"{gatebell.url}/admin/audit/export.{extension}"
        for method in ("GET", "HEAD"):
            assert stale.request(method, url, allow_redirects=False).status_code == 302
        assert fresh.get(url, allow_redirects=False).status_code == 200


def test_administrators_need_a_recent_sign_in_to_create_and_rotate_tokens(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell, name="ruth", admin=True)
    made, browser = make_token(gatebell, person), old_browser(gatebell, person)
    sent = {"csrf_token": csrf_token(gatebell, browser), "name": "script", "scopes": "api"}
    for path in (f"{TOKENS}/new", f"{TOKENS}/{made.id}/rotate"):
        answer = browser.post(gatebell.url + path, data=sent, allow_redirects=False)
        assert answer.headers["Location"].startswith("/users/sign_in?again=yes&next="), path
    assert tokens_of(gatebell, person) == 1
    # Tokens can always be revoked.
    answer = browser.post(
        f"{gatebell.url}{TOKENS}/{made.id}/revoke", data=sent, allow_redirects=False
    )
    assert (answer.headers["Location"], tokens_of(gatebell, person)) == (TOKENS, 0)
    browser = open_browser(gatebell, person)
    sent["csrf_token"] = csrf_token(gatebell, browser)
    browser.post(f"{gatebell.url}{TOKENS}/new", data=sent, allow_redirects=False)
    assert tokens_of(gatebell, person) == 1


def test_other_users_can_create_tokens_with_an_old_sign_in(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    browser = old_browser(gatebell, person)
    sent = {"csrf_token": csrf_token(gatebell, browser), "name": "script", "scopes": "api"}
    browser.post(f"{gatebell.url}{TOKENS}/new", data=sent, allow_redirects=False)
    assert tokens_of(gatebell, person) == 1
