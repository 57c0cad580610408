"""The search page: its results, and the users who can see them."""

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import (
    alice,
    make_project,
    make_user,
    open_browser,
    signed_in,
    unique,
)
from tests.support.accounts.team import give_role
from tests.support.alerts.integration_pages import words
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("postgres")


def find(browser: requests.Session, gatebell: LiveGatebell, text: str, part: str = "") -> str:
    given = {"q": text, **({"_part": part} if part else {})}
    page = browser.get(f"{gatebell.url}/-/search", params=given, timeout=30)
    assert page.status_code == 200
    return page.text if part else words(page.text)


@pytest.mark.both_databases
def test_the_search_finds_alerts_and_incidents_by_words_and_by_number(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    project, other = make_project(gatebell, owner), make_project(gatebell, owner)
    title = f"{unique('Zebra')} is down"
    for each in (project, other):
        connect(gatebell, each).accepted(title=title)
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{gatebell.url}/{project}/-/alerts/1")
    submit(browser, page, form_to(page, "/-/incidents"), alert="1")
    text = find(browser, gatebell, title[:9].lower())
    assert text.count(f"{project}#1") == 2  # an alert and an incident
    assert text.count(f"{other}#1") == 1
    text = find(browser, gatebell, f"{project}#1")
    assert text.count(title) == 2
    assert f"{other}#1" not in text
    # The last part of a path is enough.
    assert title in find(browser, gatebell, f"{project.rpartition('/')[2]}#1")
    assert title in find(browser, gatebell, "#1")
    assert f"{project}#1" in find(browser, gatebell, "1")
    assert "No results" in find(browser, gatebell, f"{project}#99999999999")
    sharp = f"{unique('C')}# service is down"
    connect(gatebell, other).accepted(title=sharp)
    assert sharp in find(browser, gatebell, sharp.partition(" ")[0])


@pytest.mark.both_databases
def test_the_search_finds_only_what_the_user_may_see(gatebell: LiveGatebell) -> None:
    owner, guest, stranger = (make_user(gatebell, name=name) for name in ("ann", "ben", "cem"))
    project = make_project(gatebell, owner)
    give_role(gatebell, project, guest, Role.GUEST)
    title = f"{unique('Walrus')} is down"
    connect(gatebell, project).accepted(title=title)
    found = {
        person.username: [
            title in find(browser, gatebell, title[:10]),
            title in find(browser, gatebell, f"{project}#1"),
            f">{project}<" in find(browser, gatebell, project, "list"),
            f"@{owner.username}" in find(browser, gatebell, f"@{owner.username}", "list"),
        ]
        for person in (owner, guest, stranger)
        for browser in [signed_in(gatebell, person)]
    }
    assert found[owner.username] == [True, True, True, True]
    assert found[guest.username] == [False, False, True, True]
    assert found[stranger.username] == [False, False, False, False]
    assert "/-/alerts/" not in find(signed_in(gatebell, stranger), gatebell, title, "list")


def test_the_search_finds_pages_and_administrators_find_theirs(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    assert "Contacts" in find(browser, gatebell, "phone")
    assert "Security" in find(browser, gatebell, "2FA")
    assert "Audit events" not in find(browser, gatebell, "audit events")
    administrator = open_browser(gatebell, make_user(gatebell, admin=True))
    assert "Audit events" in find(administrator, gatebell, "audit events")


def test_the_script_gets_only_the_options(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    part = find(browser, gatebell, "profile", "list")
    assert "<html" not in part
    assert part.count('role="option"') == 1
    assert 'role="option"' in find(browser, gatebell, "", "list")
    at = f"{gatebell.url}/-/search"
    assert browser.get(at, params={"q": "x" * 201}, timeout=30).status_code == 400
    assert browser.get(at, params={"other": "x"}, timeout=30).status_code == 400
    asked = requests.get(at, params={"q": "x"}, allow_redirects=False, timeout=30)
    assert asked.headers["Location"].startswith("/users/sign_in")
