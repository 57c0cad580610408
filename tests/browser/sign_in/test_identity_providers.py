"""Sign-in through a provider in a real browser with its rules for forms and cookies."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.page_lists import remove_providers
from tests.support.accounts.people import make_user, unique
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import FakeProvider, add_provider, running_provider


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with running_provider() as made:
        yield made


@pytest.fixture
def title(live_sqlite: LiveGatebell, provider: FakeProvider) -> Iterator[str]:
    """Title of the provider on the sign-in page."""
    title = unique("Account")
    add_provider(live_sqlite, provider.url, "--creates-accounts", title=title)
    yield title
    remove_providers(live_sqlite)


def test_a_user_signs_in_with_the_button_of_a_provider(
    live_sqlite: LiveGatebell, provider: FakeProvider, title: str, page: Page
) -> None:
    page.goto(f"{live_sqlite.url}/-/user_settings/security")
    page.get_by_role("button", name=f"Sign in with {title}").click()
    page.wait_for_url(f"{live_sqlite.url}/-/user_settings/security")
    expect(page.get_by_text(f"You can sign in as {provider.person['email']}")).to_be_visible()
    expect(page.get_by_role("heading", name="Set password")).to_be_visible()


@pytest.mark.long
def test_a_user_connects_and_disconnects_without_scripts(
    live_sqlite: LiveGatebell, title: str, plain_page: Page
) -> None:
    have_signed_in(plain_page, live_sqlite, make_user(live_sqlite, name="charlie"))
    plain_page.goto(f"{live_sqlite.url}/-/user_settings/security")
    plain_page.get_by_role("link", name=f"Connect {title}").click()
    plain_page.get_by_role("button", name=f"Continue to {title}").click()
    plain_page.wait_for_url(f"{live_sqlite.url}/-/user_settings/security")
    expect(plain_page.get_by_text(f"Your account is connected to {title}.")).to_be_visible()
    plain_page.locator("summary", has_text="Disconnect").click()
    plain_page.get_by_role("button", name="Disconnect").click()
    expect(plain_page.get_by_text(f"no longer connected to {title}.")).to_be_visible()


@pytest.mark.long
def test_an_administrator_adds_a_provider_and_tests_it(
    live_sqlite: LiveGatebell, provider: FakeProvider, page: Page
) -> None:
    have_signed_in(page, live_sqlite, make_user(live_sqlite, name="root", admin=True))
    page.goto(f"{live_sqlite.url}/admin/identity_providers")
    page.get_by_role("link", name="Add").first.click()
    page.get_by_role("link", name="Keycloak").click()
    page.get_by_label("Issuer").fill(provider.url)
    page.get_by_label("Client ID").fill("gatebell")
    page.get_by_label("Client secret").fill("a secret")
    page.get_by_role("button", name="Add identity provider").click()
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text("The connection works.")).to_be_visible()
    remove_providers(live_sqlite)
