"""Scopes that are removed from an application are no longer issued."""

import pytest
from sqlalchemy import update

from models import Application
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    open_browser,
)
from tests.support.oauth.device_wire import codes, enter_code, poll, press_decision
from tests.support.oauth.oauth_wire import (
    TokenPair,
    assert_refused,
    is_token_valid,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
    submit_decision,
    token_info,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """An application with two scopes."""
    return make_application(gatebell, bob(gatebell), scopes="read_api read_user")


def code_of(gatebell: LiveGatebell, client: ClientCredentials, person: Person) -> str:
    browser = open_browser(gatebell, person)
    return parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, client, prompt="consent"))
    )["code"]


def register(gatebell: LiveGatebell, client: ClientCredentials, scopes: str) -> None:
    with database_of(gatebell) as session:
        row = Application.uid == client.client_id
        session.execute(update(Application).where(row).values(scopes=scopes))


def scopes_of(gatebell: LiveGatebell, pair: TokenPair) -> list[str]:
    scopes: list[str] = token_info(gatebell, pair.access).json()["scope"]
    return scopes


@pytest.mark.both_databases
def test_a_removed_scope_is_not_issued_for_codes_and_refreshes(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    first, second = (code_of(gatebell, client, alice(gatebell)) for _ in range(2))
    live = parse_token_pair(redeem(gatebell, client, first))
    register(gatebell, client, "read_user")
    narrow = parse_token_pair(redeem(gatebell, client, second))
    assert (narrow.answer["scope"], scopes_of(gatebell, narrow)) == ("read_user", ["read_user"])
    assert scopes_of(gatebell, live) == ["read_api", "read_user"]
    refreshed = parse_token_pair(
        refresh(gatebell, client, live.refresh, scope="read_api read_user")
    )
    assert (refreshed.answer["scope"], scopes_of(gatebell, refreshed)) == (
        "read_user",
        ["read_user"],
    )
    register(gatebell, client, "read_api read_user")
    again = parse_token_pair(refresh(gatebell, client, refreshed.refresh))
    assert again.answer["scope"] == "read_api read_user"


@pytest.mark.both_databases
def test_a_grant_without_a_remaining_scope_is_invalid(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    first, second = (code_of(gatebell, client, alice(gatebell)) for _ in range(2))
    pair = parse_token_pair(redeem(gatebell, client, first))
    register(gatebell, client, "openid")
    assert_refused(redeem(gatebell, client, second), "invalid_grant")
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")


def test_the_page_revokes_access_tokens_with_a_removed_scope(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = parse_token_pair(redeem(gatebell, client, code_of(gatebell, client, alice(gatebell))))
    url = f"{gatebell.url}/-/user_settings/applications/{client.id}"
    owner = open_browser(gatebell, bob(gatebell))
    assert "Removed scopes" not in owner.get(url).text
    register(gatebell, client, "read_user")
    page = owner.get(url)
    assert "1 access token still has" in page.text
    submit(owner, page, form_to(page, "/removed_scopes/end"))
    assert not is_token_valid(gatebell, pair.access)
    assert "Removed scopes" not in owner.get(url).text
    assert parse_token_pair(refresh(gatebell, client, pair.refresh)).answer["scope"] == "read_user"


def test_a_device_gets_only_the_scopes_that_the_page_showed(
    gatebell: LiveGatebell,
) -> None:
    client = make_application(
        gatebell, bob(gatebell), scopes="read_api read_user", confidential=False
    )
    device = codes(gatebell, client, scope="read_api read_user")
    register(gatebell, client, "read_user")
    browser = open_browser(gatebell, alice(gatebell))
    page = enter_code(browser, gatebell, device["user_code"])
    assert "Read access to the API" not in words(page)
    register(gatebell, client, "read_api read_user")
    assert press_decision(browser, page, "approve").status_code == 200
    assert poll(gatebell, client, device["device_code"]).json()["scope"] == "read_user"
