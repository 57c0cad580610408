"""The way back to an application, in a real browser, from every page that a form can end at.

Chromium applies a page's `form-action` to the whole chain of redirects after its form, and cuts a
popup off from who opened it where their `Cross-Origin-Opener-Policy` differ.
"""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.client_site import ClientSite, running_site
from tests.browser.test_passkeys import Key, add_passkey, sign_out
from tests.browser.test_passkeys import sign_in as sign_in_at_home
from tests.support.live import LiveGatebell, NewService, running
from tests.support.oauth_wire import Changes, ask, authorization_url, decide, landing
from tests.support.people import (
    ClientCredentials,
    Person,
    bob,
    make_application,
    make_user,
    unique,
)
from tests.support.people import sign_in as sign_in_by_hand
from tests.support.second_steps import code_of, give_app


@pytest.fixture(scope="module")
def gatebell(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service that is reached by a name: browsers know no passkeys for numbers."""
    with running(new_service(host="localhost")) as live:
        yield live


@pytest.fixture(scope="module")
def site() -> Iterator[ClientSite]:
    with running_site() as running:
        yield running


@pytest.fixture(scope="module")
def other_site() -> Iterator[ClientSite]:
    with running_site() as running:
        yield running


@pytest.fixture
def charlie(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="charlie")


@pytest.fixture(params=["with scripts", "without scripts"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param == "with scripts")
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


def application(gatebell: LiveGatebell, redirect_uri: str, **changes: object) -> ClientCredentials:
    return make_application(
        gatebell, bob(gatebell), name=unique("Board"), redirect_uris=(redirect_uri,), **changes
    )


def approve_by_hand(gatebell: LiveGatebell, person: Person, client: ClientCredentials) -> None:
    """Let the person approve an application, elsewhere and some other day."""
    elsewhere = sign_in_by_hand(gatebell, person)
    assert "code" in landing(decide(elsewhere, ask(elsewhere, gatebell, client)))


def begin(
    page: Page, gatebell: LiveGatebell, client: ClientCredentials, **changes: Changes
) -> None:
    page.goto(authorization_url(gatebell, client, **changes))


def give_password(page: Page, person: Person) -> None:
    page.get_by_label("User name or e-mail address").fill(person.username)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def assert_back_with_a_code(page: Page, callback: str) -> None:
    page.wait_for_url(f"{callback}?*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Back")
    assert "code" in parse_qs(urlsplit(page.url).query)


def test_a_person_who_comes_back_signs_in_and_is_at_the_application(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(gatebell, site.callback)
    approve_by_hand(gatebell, charlie, client)
    begin(page, gatebell, client)
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)


def test_a_trusted_application_is_reached_right_after_the_first_sign_in(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(gatebell, site.callback, trusted=True)
    begin(page, gatebell, client)
    page.get_by_label("User name or e-mail address").fill(charlie.username)
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("There is a problem")
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)


def test_the_second_step_leads_to_the_application(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(gatebell, site.callback, trusted=True)
    app = give_app(gatebell, charlie)
    begin(page, gatebell, client)
    give_password(page, charlie)
    page.get_by_role("textbox", name="Code").fill(code_of(app))
    page.get_by_role("button", name="Continue").click()
    assert_back_with_a_code(page, site.callback)


def test_a_passkey_leads_to_the_application_alone_and_as_the_second_step(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, visitor: BrowserContext
) -> None:
    client = application(gatebell, site.callback, trusted=True)
    page = visitor.new_page()
    Key(page)
    sign_in_at_home(page, gatebell, charlie)
    add_passkey(page, gatebell, charlie, "My laptop")
    page.get_by_role("link", name="I have kept them").click()
    sign_out(page)
    begin(page, gatebell, client)
    page.get_by_role("button", name="Sign in with a passkey").click()
    assert_back_with_a_code(page, site.callback)
    page.goto(gatebell.url)
    sign_out(page)
    begin(page, gatebell, client)
    give_password(page, charlie)
    page.get_by_role("button", name="Use a passkey").click()
    assert_back_with_a_code(page, site.callback)


@pytest.mark.parametrize("changes", [{"prompt": "login"}, {"max_age": "0"}])
def test_a_person_who_is_asked_to_sign_in_again_gets_back_to_the_application(
    gatebell: LiveGatebell,
    site: ClientSite,
    charlie: Person,
    page: Page,
    changes: dict[str, Changes],
) -> None:
    client = application(gatebell, site.callback, trusted=True)
    begin(page, gatebell, client)
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)
    begin(page, gatebell, client, **changes)
    give_password(page, charlie)
    assert_back_with_a_code(page, site.callback)


def test_the_answer_reaches_a_callback_that_hands_on_to_another_origin(
    gatebell: LiveGatebell, site: ClientSite, other_site: ClientSite, charlie: Person, page: Page
) -> None:
    site.hand_on_to(other_site)
    client = application(gatebell, site.broker)
    begin(page, gatebell, client)
    give_password(page, charlie)
    page.get_by_role("button", name="Authorize").click()
    assert_back_with_a_code(page, other_site.callback)


def test_the_answer_reaches_a_program_that_listens_on_ipv6(
    gatebell: LiveGatebell, charlie: Person, page: Page
) -> None:
    with running_site("::1") as program:
        client = application(gatebell, program.callback)
        begin(page, gatebell, client)
        give_password(page, charlie)
        page.get_by_role("button", name="Authorize").click()
        assert_back_with_a_code(page, program.callback)
        page.goto("about:blank")


def test_cancel_and_signing_in_as_somebody_else_lead_back_too(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, page: Page
) -> None:
    client = application(gatebell, site.callback)
    begin(page, gatebell, client)
    give_password(page, bob(gatebell))
    page.get_by_role("button", name="Sign in as somebody else").click()
    give_password(page, charlie)
    expect(page.locator("main")).to_contain_text(charlie.username)
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(f"{site.callback}?*")
    assert parse_qs(urlsplit(page.url).query)["error"] == ["access_denied"]


def test_a_popup_keeps_its_opener_on_every_page_and_is_not_closed_before_it_is(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, visitor: BrowserContext
) -> None:
    client = application(gatebell, site.callback)
    app = give_app(gatebell, charlie)
    page = visitor.new_page()
    page.goto(f"{site.url}/#{authorization_url(gatebell, client)}")
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
    expect(popup.get_by_role("heading", level=1)).to_have_text("One more step")
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


def test_a_popup_that_passes_through_without_a_page_keeps_its_opener(
    gatebell: LiveGatebell, site: ClientSite, charlie: Person, visitor: BrowserContext
) -> None:
    client = application(gatebell, site.callback, trusted=True)
    page = visitor.new_page()
    sign_in_at_home(page, gatebell, charlie)
    page.goto(f"{site.url}/#{authorization_url(gatebell, client)}")
    with page.expect_popup():
        page.get_by_role("button", name="Sign in with Gatebell").click()
    expect(page.locator("output")).to_contain_text("code=")
    assert page.evaluate("window.popup.closed") is False


def test_signing_out_leads_back_to_an_application_that_hands_on(
    gatebell: LiveGatebell, site: ClientSite, other_site: ClientSite, charlie: Person, page: Page
) -> None:
    site.hand_on_to(other_site)
    client = application(gatebell, site.broker)
    begin(page, gatebell, client)
    give_password(page, charlie)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Authorize")
    page.goto(
        f"{gatebell.url}/oauth/logout?client_id={client.client_id}"
        f"&post_logout_redirect_uri={site.broker}"
    )
    page.get_by_role("button", name="Sign out of").click()
    page.wait_for_url(f"{other_site.callback}?*")
