"""Connecting a device in a real browser: with the keyboard, in every look, without scripts."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.keys import press
from tests.browser.looks import problems_of
from tests.support.accounts.people import alice, bob, make_application, make_user
from tests.support.oauth.device_wire import codes, poll, television
from tests.support.service.live import LiveGatebell

# One database is enough, since tests without a browser check the effects on both.
pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.spec("B10", "C1", "C3", "C8")
def test_a_user_connects_a_tv_with_the_keyboard(gatebell: LiveGatebell, page: Page) -> None:
    client = television(gatebell)
    device = codes(gatebell, client)
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(device["verification_uri"])
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.type(device["user_code"].replace("-", " ").lower())
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Telly & Co")
    expect(page.locator("main")).to_contain_text("Make sure that you started this yourself")
    code = page.get_by_text(device["user_code"], exact=True)
    expect(code).to_be_visible()
    # The code that the user compares is the largest text.
    sizes = page.eval_on_selector_all(
        "main *", "all => all.map(each => parseFloat(getComputedStyle(each).fontSize))"
    )
    assert code.evaluate("each => parseFloat(getComputedStyle(each).fontSize)") == max(sizes)
    assert sizes.count(max(sizes)) == 1
    press(page, page.get_by_role("button", name="Approve Telly & Co"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Device connected")
    assert poll(gatebell, client, device["device_code"]).json()["token_type"] == "Bearer"


@pytest.mark.long
@pytest.mark.spec("C3", "C7")
def test_a_user_denies_a_device_after_following_a_link(gatebell: LiveGatebell, page: Page) -> None:
    client = television(gatebell)
    device = codes(gatebell, client)
    charlie = make_user(gatebell, name="charlie")
    page.goto(device["verification_uri_complete"])
    page.get_by_label("Username or email address").fill(charlie.email)
    page.get_by_label("Password", exact=True).fill(charlie.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_label("Code")).to_have_value(device["user_code"])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Access denied")
    assert poll(gatebell, client, device["device_code"]).json()["error"] == "access_denied"


@pytest.mark.long
def test_a_device_is_connected_without_scripts(plain_page: Page, live_sqlite: LiveGatebell) -> None:
    device = codes(live_sqlite, television(live_sqlite))
    have_signed_in(plain_page, live_sqlite, alice(live_sqlite))
    plain_page.goto(device["verification_uri_complete"])
    plain_page.get_by_role("button", name="Continue").click()
    plain_page.get_by_role("button", name="Approve").click()
    expect(plain_page.get_by_role("heading", level=1)).to_have_text("Device connected")


@pytest.mark.long
def test_the_pages_of_devices_have_no_problems(
    live_sqlite: LiveGatebell, page: Page, told: list[str]
) -> None:
    # An administrator sees an additional warning.
    have_signed_in(page, live_sqlite, make_user(live_sqlite, name="dora", admin=True))
    client = make_application(
        live_sqlite,
        bob(live_sqlite),
        name="An application with " + "very-long-words" * 4,
        confidential=False,
        scopes="api read_user openid",
    )
    problems: list[str] = []
    page.goto(f"{live_sqlite.url}/oauth/device")
    problems += problems_of(page)
    for decision in ("Approve", "Deny"):
        device = codes(live_sqlite, client, scope="api read_user openid offline_access")
        page.goto(device["verification_uri_complete"])
        problems += problems_of(page)
        page.get_by_role("button", name="Continue").click()
        problems += problems_of(page)
        page.get_by_role("button", name=decision).click()
        problems += problems_of(page)
    page.goto(f"{live_sqlite.url}/oauth/device/phone")
    problems += problems_of(page)
    page.get_by_label("Code").fill("bcdf ghjk")
    page.get_by_role("button", name="Show the QR code").click()
    problems += problems_of(page)
    assert problems == []
    assert told == []
    page.goto(f"{live_sqlite.url}/oauth/device?user_code=nonsense")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("A code has eight letters").first).to_be_visible()
    assert problems_of(page) == []
