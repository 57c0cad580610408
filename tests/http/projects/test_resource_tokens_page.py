"""The pages of access tokens of projects and groups."""

import re
from datetime import timedelta
from html import unescape

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import Person, make_project, now, open_browser
from tests.support.accounts.personal_tokens import Api, change
from tests.support.accounts.resource_tokens import (
    Namespace,
    get_namespace,
    make_bot_token,
    script_of,
)
from tests.support.accounts.team import browser_of, give_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

DAY = timedelta(days=1)


@pytest.fixture
def browser(gatebell: LiveGatebell, alice: Person) -> requests.Session:
    """Alice's browser."""
    return open_browser(gatebell, alice)


def words(page: requests.Response) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def shown_token(page: requests.Response) -> str:
    found = re.search(r'<code id="new-token">(gbp-[^<]+)</code>', page.text)
    assert found, page.text
    return found.group(1)


def create(
    browser: requests.Session,
    gatebell: LiveGatebell,
    namespace: Namespace,
    **values: str | list[str],
) -> requests.Response:
    page = browser.get(f"{gatebell.url}{namespace.page}/new")
    given: dict[str, str | list[str]] = {"name": "deploy", "scopes": ["api"], **values}
    return submit(browser, page, form_with(page, "name"), **given)


@pytest.mark.long
@pytest.mark.spec("G4")
def test_a_token_is_created_for_a_bot_and_shown_once(
    gatebell: LiveGatebell, browser: requests.Session, namespace: Namespace
) -> None:
    assert "No access tokens yet" in browser.get(gatebell.url + namespace.page).text

    answer = create(browser, gatebell, namespace, role="20", description="runs on ci-7")
    assert answer.status_code == 302, answer.text
    page = browser.get(gatebell.url + namespace.page)

    assert page.headers["Cache-Control"] == "no-store"
    token = shown_token(page)
    assert Api(gatebell, token).send_request("GET", "/user").status_code == 200
    again = browser.get(gatebell.url + namespace.page)
    assert "gbp-" not in again.text
    assert "1 active token." in words(again)
    assert re.search(r"deploy .*runs on ci-7 .*Reporter", words(again))
    # The call above used the token.
    assert "from 127.0.0.1" in words(again)


@pytest.mark.spec("G4")
def test_the_bot_is_marked_among_the_members_and_cannot_be_removed_there(
    gatebell: LiveGatebell, browser: requests.Session, namespace: Namespace, alice: Person
) -> None:
    make_bot_token(script_of(gatebell, alice), namespace, name="deploy bot")
    members = (
        f"/{namespace.path}/-/settings/members"
        if namespace.kind == "projects"
        else f"/groups/{namespace.path}/-/members"
    )

    page = browser.get(gatebell.url + members)

    assert re.search(r"deploy bot @\w+_bot_\w+ Bot Developer", words(page))
    bot = re.search(r"@(\w+_bot_\w+)", page.text)
    assert bot
    # A bot belongs to its namespace, so it cannot be added or get another role.
    answer = submit(browser, page, form_with(page, "user"), user=bot.group(1), role="40")
    assert answer.status_code == 422
    assert "Bots cannot be added as members." in words(answer)


@pytest.mark.spec("G4")
def test_tokens_are_rotated_revoked_and_listed_as_inactive(
    gatebell: LiveGatebell, browser: requests.Session, namespace: Namespace, alice: Person
) -> None:
    old = make_bot_token(script_of(gatebell, alice), namespace, name="nightly")
    page = browser.get(gatebell.url + namespace.page)
    submit(browser, page, form_to(page, f"/{old.id}/rotate"))
    page = browser.get(gatebell.url + namespace.page)
    new = Api(gatebell, shown_token(page))
    assert new.send_request("GET", "/user").status_code == 200
    assert Api(gatebell, old.clear).send_request("GET", "/user").status_code == 401

    submit(browser, page, form_to(page, "/revoke"))

    assert new.send_request("GET", "/user").status_code == 401
    shown = words(browser.get(gatebell.url + namespace.page))
    assert "Token nightly revoked." in shown
    assert "There are no active tokens" in shown
    dead = words(browser.get(f"{gatebell.url}{namespace.page}?state=inactive"))
    assert dead.count("nightly Revoked") == 2
    assert re.search(
        r"API \u2013 \d\d:\d\d \(just now\)", dead
    )  # A bot that is no longer a member has no role.


@pytest.mark.spec("G4")
def test_a_maintainer_cannot_rotate_or_revoke_an_owners_token(
    gatebell: LiveGatebell, alice: Person
) -> None:
    project = get_namespace(gatebell, "projects", make_project(gatebell, alice))
    owners = make_bot_token(script_of(gatebell, alice), project, access_level=50)
    browser = browser_of(gatebell, project.path, Role.MAINTAINER)

    page = browser.get(gatebell.url + project.page)

    assert f"/{owners.id}/rotate" not in page.text
    assert f"/{owners.id}/revoke" not in page.text
    new = browser.get(f"{gatebell.url}{project.page}/new")
    token = form_with(new, "name").value("csrf_token")
    for action in ("rotate", "revoke"):
        address = f"{gatebell.url}{project.page}/{owners.id}/{action}"
        assert browser.post(address, data={"csrf_token": token}).status_code == 403
    assert 'value="50"' not in new.text
    refused = submit(browser, new, form_with(new, "name"), name="x", scopes=["api"], role="50")
    assert refused.status_code == 422


MISTAKES: tuple[tuple[dict[str, str | list[str]], str], ...] = (
    ({"expires_at": "0"}, "Enter a date such as"),
    ({"expires_at": "9999-12-31"}, "The expiry date must be from"),
    ({"name": " "}, "Enter a name that describes"),
    ({"name": "a\x07b"}, "must not contain control characters"),
    ({"description": "x" * 256}, "at most 255 characters"),
    ({"scopes": []}, "Choose at least one scope"),
    ({"role": "35"}, "Not a valid choice"),
    ({"role": "x"}, "Invalid Choice"),
)


@pytest.mark.long
@pytest.mark.spec("G4")
def test_an_invalid_token_is_explained_and_creates_no_bot(
    gatebell: LiveGatebell, browser: requests.Session, namespace: Namespace
) -> None:
    for values, sentence in MISTAKES:
        answer = create(browser, gatebell, namespace, **values)
        assert answer.status_code == 422, values
        assert sentence in words(answer), values
    assert "No active tokens" in words(browser.get(gatebell.url + namespace.page))


@pytest.mark.spec("G4")
def test_a_bot_does_not_count_as_an_owner_of_its_group(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    group = get_namespace(gatebell, "groups", make_project(gatebell, alice))
    make_bot_token(script_of(gatebell, alice), group, access_level=50)
    page = browser.get(f"{gatebell.url}/groups/{group.path}/-/members")

    answer = submit(browser, page, form_to(page, "/remove"))

    assert answer.status_code == 422
    assert "A group must have an owner" in words(answer)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_a_bot_is_pruned_from_the_members_after_its_token_expires(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    namespace = get_namespace(gatebell, "projects", make_project(gatebell, alice))
    script = script_of(gatebell, alice)
    lives, dies = (make_bot_token(script, namespace, name=name) for name in ("lives", "dies"))
    change(gatebell, dies.id, expires_at=now() - timedelta(minutes=1))

    gatebell.cli("prune")

    page = words(browser.get(f"{gatebell.url}/{namespace.path}/-/settings/members"))
    assert "lives @" in page
    assert "dies @" not in page
    assert Api(gatebell, lives.clear).send_request("GET", "/user").status_code == 200


@pytest.mark.both_databases
def test_the_home_page_lists_own_tokens_that_expire_soon(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    assert "of your access tokens" not in words(browser.get(gatebell.url))
    script_of(gatebell, alice, name="nightly <b>", lifetime=5 * DAY)
    script_of(gatebell, alice, name="far away", lifetime=50 * DAY)
    give_role(gatebell, make_project(gatebell, alice), alice, Role.OWNER)

    page = browser.get(gatebell.url)

    ends = now() + 5 * DAY
    assert f"1 of your access tokens expires soon: nightly <b> {ends.day} {ends:%b}" in words(page)
    assert "nightly <b>" not in page.text
    assert "far away" not in page.text
