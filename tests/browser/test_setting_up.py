"""Pages that wait during a setup and show its success without a reload."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import alice, make_application, make_user, open_browser
from tests.support.alerts.senders import connect
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    submit_decision,
)
from tests.support.service.live import LiveGatebell


@pytest.mark.long
def test_the_credentials_page_updates_itself(live_sqlite: LiveGatebell, page: Page) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    settings = f"{live_sqlite.url}/{endpoint.project}/-/settings"
    page.goto(f"{settings}/integrations/{endpoint.id}/credentials")
    setup = page.locator("#setup")
    expect(setup).to_contain_text("Waiting for the first delivery")
    expect(setup).to_contain_text("Checking every few seconds")
    expect(setup.get_by_role("link", name="Check again")).to_be_hidden()
    page.locator(".secret-box > summary").click()

    endpoint.post(b"{}", Authorization="Bearer wrong", User_Agent="curl/8.5.0")
    expect(setup).to_contain_text("Add --header 'Authorization: Bearer KEY'")
    assert problems_of(page) == []
    endpoint.accepted(title="Here")
    expect(setup).to_contain_text("Receiving deliveries.")
    expect(setup.locator(".notice.good")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Receiving deliveries.")).to_have_count(1)
    # Boxes that the user has opened in the meantime stay open.
    expect(page.locator("#authorization-key")).to_be_visible()


@pytest.mark.long
def test_the_page_of_an_application_updates_itself(live_sqlite: LiveGatebell, page: Page) -> None:
    owner, user = make_user(live_sqlite, name="owner"), make_user(live_sqlite)
    client = make_application(live_sqlite, owner)
    have_signed_in(page, live_sqlite, owner)
    page.goto(f"{live_sqlite.url}/-/user_settings/applications/{client.id}")
    setup = page.locator("#setup")
    expect(setup).to_contain_text("Waiting for the first authorization")

    browser = open_browser(live_sqlite, user)
    code = parse_redirect(
        submit_decision(browser, open_authorization(browser, live_sqlite, client))
    )["code"]
    redeem(live_sqlite, client, code, client_secret="wrong")
    expect(setup).to_contain_text("waiting for the token request")
    expect(setup).to_contain_text("Wrong client secret")
    assert problems_of(page) == []
    parse_token_pair(redeem(live_sqlite, client, code))
    expect(setup).to_contain_text(re.compile(r"It works: first authorized .* by " + user.username))


def test_the_setup_can_be_checked_again_without_scripts(
    live_sqlite: LiveGatebell, plain_page: Page
) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(plain_page, live_sqlite, alice(live_sqlite))
    settings = f"{live_sqlite.url}/{endpoint.project}/-/settings"
    plain_page.goto(f"{settings}/integrations/{endpoint.id}/credentials")
    endpoint.accepted(title="Here")
    plain_page.get_by_role("link", name="Check again").click()
    expect(plain_page.locator("#setup")).to_contain_text("Receiving deliveries.")
