"""Tests of `/-/users/<username>`, the page that `web_url` links to."""

from urllib.parse import urlsplit

import pytest
import requests

from domain.access.roles import Role
from models import Group
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    now,
    signed_in,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def page_of(gatebell: LiveGatebell, person: Person, *, seen_by: Person) -> requests.Response:
    return signed_in(gatebell, seen_by).get(f"{gatebell.url}/-/users/{person.username}")


@pytest.fixture
def project(gatebell: LiveGatebell, alice: Person) -> str:
    return make_project(gatebell, alice)


def test_the_web_url_of_a_user_leads_to_a_page(gatebell: LiveGatebell, alice: Person) -> None:
    token = make_token(gatebell, alice).clear
    headers = {"PRIVATE-TOKEN": token}
    url = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers).json()["web_url"]
    page = signed_in(gatebell, alice).get(url)
    assert page.status_code == 200
    assert page.url == url
    assert f"@{alice.username}" in page.text
    assert alice.email in page.text


def test_a_group_with_the_same_path_does_not_hide_the_user_page(
    gatebell: LiveGatebell, alice: Person
) -> None:
    # Older installations can have such groups, since users and groups had separate names.
    with database_of(gatebell) as session:
        session.add(Group(name="x", path=alice.username, created_at=now()))
    assert alice.email in page_of(gatebell, alice, seen_by=alice).text


def test_fellow_members_see_the_name_and_shared_projects_but_no_address(
    gatebell: LiveGatebell, alice: Person, project: str
) -> None:
    bob = make_user(gatebell, name="bob")
    elsewhere = make_project(gatebell, bob)
    give_role(gatebell, project, bob, Role.REPORTER)
    page = page_of(gatebell, bob, seen_by=alice)
    assert page.status_code == 200
    assert project in page.text
    assert elsewhere.partition("/")[0] not in page.text
    assert bob.email not in page.text
    assert page_of(gatebell, alice, seen_by=bob).status_code == 200


def test_users_without_shared_projects_cannot_see_the_page(
    gatebell: LiveGatebell, alice: Person
) -> None:
    stranger = make_user(gatebell, name="stranger")
    there = page_of(gatebell, alice, seen_by=stranger)
    nobody = signed_in(gatebell, stranger).get(f"{gatebell.url}/-/users/nobody-at-all")
    assert there.status_code == nobody.status_code == 404
    assert "do not share a group or project" in there.text
    assert alice.username not in there.text.replace(f"/-/users/{alice.username}", "")
    for name in (alice.username, "nobody-at-all"):
        answer = gatebell.http().get(f"{gatebell.url}/-/users/{name}", allow_redirects=False)
        assert urlsplit(answer.headers["Location"]).path == "/users/sign_in"


def test_an_administrator_sees_everything(
    gatebell: LiveGatebell, project: str, alice: Person
) -> None:
    root = make_user(gatebell, name="root", admin=True)
    page = page_of(gatebell, alice, seen_by=root)
    assert alice.email in page.text
    assert project.partition("/")[0] in page.text


@pytest.mark.both_databases
def test_an_impossible_username_is_not_found(gatebell: LiveGatebell, alice: Person) -> None:
    browser = signed_in(gatebell, alice)
    for name in ("x" * 3000, "a%00b", "..%2f..", "%F0%9F%98%80", "<b>", "self"):
        answer = browser.get(f"{gatebell.url}/-/users/{name}")
        assert answer.status_code == 404, name
        assert "<b>" not in answer.text, name
