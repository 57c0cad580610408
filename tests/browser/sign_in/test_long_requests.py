"""Long authorization requests and outdated forms, in a real browser."""

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from sqlalchemy import update

from models import User
from tests.browser.client_site import ClientSite, running_site
from tests.browser.passkeys import give_password
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    database_of,
    make_application,
    make_user,
    unique,
)
from tests.support.oauth.oauth_wire import authorization_url
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import code_of, give_app


@pytest.fixture(scope="module")
def site() -> Iterator[ClientSite]:
    with running_site() as running:
        yield running


@pytest.fixture
def charlie(localhost: LiveGatebell) -> Person:
    return make_user(localhost, name="charlie")


@pytest.fixture
def client(localhost: LiveGatebell, site: ClientSite) -> ClientCredentials:
    return make_application(
        localhost, bob(localhost), name=unique("Board"), redirect_uris=(site.callback,)
    )


def state_of(length: int) -> str:
    """Return a state in JSON of this length in the URL."""
    filters = [{"field": f"f{number}", "is": "a/b"} for number in range(200)]
    text = json.dumps({"to": "/board", "filters": filters}, separators=(",", ":"))
    return text[: length // 2]


def url_of(localhost: LiveGatebell, client: ClientCredentials, length: int) -> str:
    """Return the URL of a request with this length."""
    state, bare = state_of(length), authorization_url(localhost, client, state="")
    while len(authorization_url(localhost, client, state=state)) < length:
        state += "{}"
    while len(authorization_url(localhost, client, state=state)) > length:
        state = state[:-1]
    assert len(bare) < length
    return authorization_url(localhost, client, state=state)


def approve(page: Page, callback: str, url: str) -> None:
    """Approve the application, and check that the state is returned unchanged."""
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(lambda address: address.startswith(callback))
    brought = parse_qs(urlsplit(page.url).query)
    assert brought["state"] == parse_qs(urlsplit(url).query)["state"]
    assert "code" in brought


@pytest.mark.parametrize("length", [2_700, 7_000])
def test_a_long_state_is_returned_after_the_sign_in(
    localhost: LiveGatebell,
    site: ClientSite,
    client: ClientCredentials,
    charlie: Person,
    page: Page,
    length: int,
) -> None:
    url = url_of(localhost, client, length)
    page.goto(url)
    assert len(page.url) < 500
    give_password(page, charlie)
    approve(page, site.callback, url)


@pytest.mark.long
@pytest.mark.parametrize("length", [2_700, 7_000])
def test_a_long_state_is_returned_after_a_second_factor(
    localhost: LiveGatebell,
    site: ClientSite,
    client: ClientCredentials,
    charlie: Person,
    page: Page,
    length: int,
) -> None:
    app, url = give_app(localhost, charlie), url_of(localhost, client, length)
    page.goto(url)
    give_password(page, charlie)
    page.get_by_role("textbox", name="Code").fill(code_of(app))
    page.get_by_role("button", name="Continue").click()
    approve(page, site.callback, url)


@pytest.mark.long
@pytest.mark.parametrize("length", [2_700, 7_000])
def test_a_long_state_is_returned_after_a_forced_password_change(
    localhost: LiveGatebell,
    site: ClientSite,
    client: ClientCredentials,
    charlie: Person,
    page: Page,
    length: int,
) -> None:
    with database_of(localhost) as session:
        row = User.username == charlie.username
        session.execute(update(User).where(row).values(must_change_password=True))
    url = url_of(localhost, client, length)
    page.goto(url)
    give_password(page, charlie)
    new = f"{charlie.password} but longer"
    page.locator("[name=current_password]").fill(charlie.password)
    page.locator("[name=new_password]").fill(new)
    page.locator("[name=repeat_password]").fill(new)
    page.locator("[name=repeat_password]").press("Enter")
    approve(page, site.callback, url)


def test_an_overlong_url_results_in_an_error_page(localhost: LiveGatebell, page: Page) -> None:
    page.goto(f"{localhost.url}/oauth/authorize?state={'x' * 9_000}")
    expect(page.get_by_role("heading", level=1)).to_have_text("URL too long")


def test_the_sign_in_form_of_a_second_tab_works_after_a_sign_in(
    localhost: LiveGatebell,
    site: ClientSite,
    client: ClientCredentials,
    charlie: Person,
    visitor: BrowserContext,
) -> None:
    url = authorization_url(localhost, client)
    first, second = visitor.new_page(), visitor.new_page()
    for each in (first, second):
        each.goto(url)
    give_password(first, charlie)
    expect(first.get_by_role("button", name="Authorize")).to_be_visible()
    give_password(second, charlie)
    approve(second, site.callback, url)


def test_consent_after_a_sign_out_in_another_tab_is_requested_again(
    localhost: LiveGatebell,
    site: ClientSite,
    client: ClientCredentials,
    charlie: Person,
    visitor: BrowserContext,
) -> None:
    url = authorization_url(localhost, client)
    first, second = visitor.new_page(), visitor.new_page()
    first.goto(url)
    give_password(first, charlie)
    expect(first.get_by_role("button", name="Authorize")).to_be_visible()
    second.goto(url)
    second.get_by_role("button", name="Use another account").click()
    expect(second.get_by_label("Password", exact=True)).to_be_visible()
    first.get_by_role("button", name="Authorize").click()
    give_password(first, charlie)
    approve(first, site.callback, url)
