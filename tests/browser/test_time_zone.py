"""Pages use the browser's time zone from the first sign-in, and offer it where users choose one."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.doors import have_signed_in, sign_in
from tests.support.accounts.people import make_user
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def there(browser: Browser) -> Iterator[Page]:
    """A page of a browser in Tokyo."""
    with browser.new_context(timezone_id="Asia/Tokyo") as context:
        yield context.new_page()


def test_a_new_account_gets_the_time_zone_of_the_browser(
    gatebell: LiveGatebell, there: Page
) -> None:
    person = make_user(gatebell)
    sign_in(there, gatebell, person)
    there.goto(f"{gatebell.url}/-/user_settings/profile")
    expect(there.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    expect(there.get_by_role("button", name="Use Asia/Tokyo")).to_have_count(0)
    there.goto(f"{gatebell.url}/-/user_settings/activity")
    expect(there.locator("td time").first).to_have_attribute("title", re.compile(r" \+09:00$"))


def test_the_time_zone_of_the_browser_is_offered_and_saved(
    gatebell: LiveGatebell, there: Page
) -> None:
    person = make_user(gatebell)
    have_signed_in(there, gatebell, person)
    there.goto(f"{gatebell.url}/-/user_settings/profile")
    offer = there.get_by_role("button", name="Use Asia/Tokyo (time zone of this browser)")
    offer.focus()
    there.keyboard.press("Enter")
    zone = there.get_by_label("Time zone")
    expect(zone).to_have_value("Asia/Tokyo")
    expect(zone).to_be_focused()
    there.get_by_role("button", name="Save profile").click()
    expect(offer).to_have_count(0)
    there.goto(f"{gatebell.url}/-/users/{person.username}")
    expect(there.locator("time").first).to_have_attribute("title", re.compile(r" \+09:00$"))

    have_signed_in(there, gatebell, make_user(gatebell))
    there.goto(f"{gatebell.url}/-/user_settings/contacts")
    there.get_by_label("From").fill("22:00")
    there.get_by_label("Until").fill("07:00")
    there.get_by_role("button", name="Use Asia/Tokyo (time zone of this browser)").click()
    there.get_by_role("button", name="Save preferences").click()
    expect(there.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
