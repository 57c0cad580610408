"""Redirects back to an application in a real browser, from every page with a form.

Chromium applies a page's `form-action` to all redirects after its form. It separates a popup from
its opener if their `Cross-Origin-Opener-Policy` differs.
"""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.client_site import ClientSite, running_site
from tests.browser.conftest import leave
from tests.browser.doors import have_signed_in
from tests.browser.passkeys import add_passkey, give_password, sign_out
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    make_application,
    make_user,
    unique,
)
from tests.support.accounts.people import sign_in as sign_in_by_hand
from tests.support.oauth.oauth_wire import (
    Changes,
    authorization_url,
    open_authorization,
    parse_redirect,
    submit_decision,
)
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import code_of, give_app


@pytest.fixture(scope="module")
def site() -> Iterator[ClientSite]:
    with running_site() as running:
        yield running


@pytest.fixture(scope="module")
def other_site() -> Iterator[ClientSite]:
    with running_site() as running:
        yield running


@pytest.fixture
def charlie(localhost: LiveGatebell) -> Person:
    return make_user(localhost, name="charlie")


def application(localhost: LiveGatebell, redirect_uri: str, **changes: object) -> ClientCredentials:
    return make_application(
        localhost, bob(localhost), name=unique("Board"), redirect_uris=(redirect_uri,), **changes
    )


def approve_by_hand(localhost: LiveGatebell, person: Person, client: ClientCredentials) -> None:
    """Let the user approve an application in another browser."""
    elsewhere = sign_in_by_hand(localhost, person)
    assert "code" in parse_redirect(
        submit_decision(elsewhere, open_authorization(elsewhere, localhost, client))
    )


def begin(
    page: Page, localhost: LiveGatebell, client: ClientCredentials, **changes: Changes
) -> None:
    page.goto(authorization_url(localhost, client, **changes))


def assert_back_with_a_code(page: Page, callback: str) -> None:
    page.wait_for_url(f"{callback}?*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Back")
    assert "code" in parse_qs(urlsplit(page.url).query)


@pytest.mark.long
def test_a_user_who_approved_before_is_redirected_after_the_sign_in(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(localhost, site.callback)
    approve_by_hand(localhost, charlie, client)
    begin(page, localhost, client)
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)


@pytest.mark.long
def test_a_trusted_application_needs_no_consent_after_the_sign_in(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(localhost, site.callback, trusted=True)
    begin(page, localhost, client)
    page.get_by_label("Username or email address").fill(charlie.username)
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator("main")).to_contain_text("Incorrect username or password.")
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)


def test_the_second_factor_redirects_to_the_application(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, plain_page: Page
) -> None:
    page = plain_page  # The test of the popup runs these steps with scripts.
    client = application(localhost, site.callback, trusted=True)
    app = give_app(localhost, charlie)
    begin(page, localhost, client)
    give_password(page, charlie)
    page.get_by_role("textbox", name="Code").fill(code_of(app))
    page.get_by_role("button", name="Continue").click()
    assert_back_with_a_code(page, site.callback)


@pytest.mark.long
@pytest.mark.usefixtures("key")
def test_a_passkey_redirects_to_the_application(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(localhost, site.callback, trusted=True)
    have_signed_in(page, localhost, charlie)
    add_passkey(page, localhost, charlie, "My laptop")
    page.get_by_role("link", name="I have saved my codes").click()
    sign_out(page)
    begin(page, localhost, client)
    page.get_by_role("button", name="Sign in with a passkey").click()
    assert_back_with_a_code(page, site.callback)
    page.goto(localhost.url)
    sign_out(page)
    begin(page, localhost, client)
    give_password(page, charlie)
    page.get_by_role("button", name="Use a passkey").click()
    assert_back_with_a_code(page, site.callback)


@pytest.mark.long
def test_a_required_new_sign_in_redirects_to_the_application(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(localhost, site.callback, trusted=True)
    begin(page, localhost, client)
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)
    again: tuple[dict[str, Changes], ...] = ({"prompt": "login"}, {"max_age": "0"})
    for changes in again:
        begin(page, localhost, client, **changes)
        give_password(page, charlie)
        assert_back_with_a_code(page, site.callback)


@pytest.mark.long
def test_a_callback_can_redirect_to_another_origin(
    localhost: LiveGatebell, site: ClientSite, other_site: ClientSite, charlie: Person, page: Page
) -> None:
    site.hand_on_to(other_site)
    client = application(localhost, site.broker)
    begin(page, localhost, client)
    give_password(page, charlie)
    page.get_by_role("button", name="Authorize").click()
    assert_back_with_a_code(page, other_site.callback)


@pytest.mark.long
def test_a_program_on_ipv6_loopback_receives_the_redirect(
    localhost: LiveGatebell, charlie: Person, plain_page: Page
) -> None:
    page = plain_page  # The test above authorizes with scripts.
    with running_site("::1") as program:
        client = application(localhost, program.callback)
        begin(page, localhost, client)
        give_password(page, charlie)
        page.get_by_role("button", name="Authorize").click()
        assert_back_with_a_code(page, program.callback)
        leave(page)


@pytest.mark.long
def test_cancelling_and_switching_accounts_redirect_to_the_application(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, plain_page: Page
) -> None:
    page = plain_page  # A test in test_first_hour.py cancels with scripts.
    client = application(localhost, site.callback)
    begin(page, localhost, client)
    give_password(page, bob(localhost))
    page.get_by_role("button", name="Use another account").click()
    give_password(page, charlie)
    expect(page.locator("main")).to_contain_text(charlie.username)
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(f"{site.callback}?*")
    assert parse_qs(urlsplit(page.url).query)["error"] == ["access_denied"]


@pytest.mark.long
def test_a_popup_keeps_its_opener_on_every_page(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, visitor: BrowserContext
) -> None:
    client = application(localhost, site.callback)
    app = give_app(localhost, charlie)
    page = visitor.new_page()
    page.goto(f"{site.url}/#{authorization_url(localhost, client)}")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Sign in with Gatebell").click()
    popup = opened.value

    def is_in_touch() -> bool:
        popup.wait_for_load_state()
        is_open = page.evaluate("window.popup.closed") is False
        return is_open and popup.evaluate("window.opener !== null")

    expect(popup.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert is_in_touch()
    give_password(popup, charlie)
    expect(popup.get_by_role("heading", level=1)).to_have_text("Two-factor authentication")
    assert is_in_touch()
    popup.get_by_role("textbox", name="Code").fill(code_of(app))
    popup.get_by_role("button", name="Continue").click()
    expect(popup.get_by_role("heading", level=1)).to_contain_text("Authorize")
    assert is_in_touch()
    popup.get_by_role("button", name="Authorize").click()
    expect(page.locator("output")).to_contain_text("code=")
    assert page.evaluate("window.popup.closed") is False
    popup.close()
    page.wait_for_function("window.popup.closed")


@pytest.mark.long
def test_a_popup_without_a_page_keeps_its_opener(
    localhost: LiveGatebell, site: ClientSite, charlie: Person, visitor: BrowserContext
) -> None:
    client = application(localhost, site.callback, trusted=True)
    page = visitor.new_page()
    have_signed_in(page, localhost, charlie)
    page.goto(f"{site.url}/#{authorization_url(localhost, client)}")
    with page.expect_popup():
        page.get_by_role("button", name="Sign in with Gatebell").click()
    expect(page.locator("output")).to_contain_text("code=")
    assert page.evaluate("window.popup.closed") is False


@pytest.mark.long
def test_a_sign_out_can_redirect_to_another_origin(
    localhost: LiveGatebell,
    site: ClientSite,
    other_site: ClientSite,
    charlie: Person,
    plain_page: Page,
) -> None:
    page = plain_page
    site.hand_on_to(other_site)
    client = application(localhost, site.broker)
    begin(page, localhost, client)
    give_password(page, charlie)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Authorize")
    page.goto(
        f"{localhost.url}/oauth/logout?client_id={client.client_id}"
        f"&post_logout_redirect_uri={site.broker}"
    )
    page.get_by_role("button", name="Sign out of").click()
    page.wait_for_url(f"{other_site.callback}?*")
