"""How much an application is used: people, live tokens, and when last."""

import re
from html import unescape

import pytest
import requests

from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    make_application,
    make_user,
    open_browser,
)
from tests.support.oauth.oauth_wire import (
    ask,
    decide,
    landing,
    pair_in,
    post_token,
    redeem,
    refresh,
    revoke,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("postgres")

PAGES = "/-/user_settings/applications"


def words(page: requests.Response) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def authorize(
    gatebell: LiveGatebell, client: ClientCredentials, person: Person
) -> tuple[requests.Session, str]:
    """Let somebody in; return their browser and the refresh token."""
    browser = open_browser(gatebell, person)
    code = landing(decide(browser, ask(browser, gatebell, client)))["code"]
    return browser, pair_in(redeem(gatebell, client, code)).refresh


@pytest.mark.both_databases
@pytest.mark.spec("F1")
def test_the_pages_count_people_and_live_tokens(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    page = f"{gatebell.url}{PAGES}/{client.id}"
    owners = open_browser(gatebell, owner)
    assert "Not used yet" in words(owners.get(page))

    _, first = authorize(gatebell, client, make_user(gatebell))
    browser, second = authorize(gatebell, client, make_user(gatebell, name="bob"))
    landing(ask(browser, gatebell, client))  # Bob once more, without a question
    refresh(gatebell, client, first)

    assert "Last used just now" in words(owners.get(page))
    assert "2 users authorized it; it has 2 active tokens" in words(owners.get(page))
    row = words(owners.get(gatebell.url + PAGES))
    assert re.search(r"Deploy Board .* 2 2 just now", row), row

    assert revoke(gatebell, client, second).status_code == 200
    assert "2 users authorized it; it has 1 active token" in words(owners.get(page))
    mine = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    assert "Approval remembered" in mine.text  # it asked for no token since, and need not ask


@pytest.mark.spec("F5")
def test_who_revokes_an_application_is_not_counted_any_more(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    browser, _ = authorize(gatebell, client, make_user(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")

    submit(browser, page, form_to(page, "/revoke"))

    shown = words(open_browser(gatebell, owner).get(f"{gatebell.url}{PAGES}/{client.id}"))
    assert "It has no active authorizations or tokens." in shown


def test_a_password_counts_like_a_consent(gatebell: LiveGatebell) -> None:
    owner, alice = make_user(gatebell, name="owner"), make_user(gatebell)
    client = make_application(gatebell, owner, scopes="api")
    form = {
        "grant_type": "password",
        "client_id": client.client_id,
        "client_secret": client.secret,
        "username": alice.username,
        "password": alice.password,
    }
    assert post_token(gatebell, form).status_code == 200

    shown = words(open_browser(gatebell, owner).get(f"{gatebell.url}{PAGES}/{client.id}"))
    assert "1 user authorized it; it has 1 active token" in shown
