"""Connecting a device, in a real browser: by keyboard, in every look, without scripts."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_first_hour import sign_in
from tests.support.device_wire import codes, poll, television
from tests.support.live import LiveGatebell
from tests.support.people import Person, bob, make_application, make_user

LOOKS = ("light wide", "dark wide", "light narrow", "dark narrow")


@pytest.mark.spec("B10", "C1", "C3", "C8")
def test_a_person_connects_a_television_with_the_keyboard_alone(
    gatebell: LiveGatebell, page: Page
) -> None:
    client = television(gatebell)
    device = codes(gatebell, client)
    sign_in(page, gatebell, make_user(gatebell))
    page.goto(device["verification_uri"])
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.type(device["user_code"].replace("-", " ").lower())
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Telly & Co")
    expect(page.locator("main")).to_contain_text("Make sure that you started this yourself")
    expect(page.locator("main")).to_contain_text(device["user_code"])
    button = page.get_by_role("button", name="Approve Telly & Co")
    for _ in range(20):
        if button.evaluate("each => each === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("The device is connected")
    assert poll(gatebell, client, device["device_code"]).json()["token_type"] == "Bearer"


@pytest.mark.spec("C3", "C7")
def test_a_person_who_followed_a_strangers_link_says_no(gatebell: LiveGatebell, page: Page) -> None:
    client = television(gatebell)
    device = codes(gatebell, client)
    charlie = make_user(gatebell, name="charlie")
    page.goto(device["verification_uri_complete"])
    page.get_by_label("User name or e-mail address").fill(charlie.email)
    page.get_by_label("Password", exact=True).fill(charlie.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_label("Code")).to_have_value(device["user_code"])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You said no")
    assert poll(gatebell, client, device["device_code"]).json()["error"] == "access_denied"


def test_it_all_works_without_scripts(browser: Browser, live_sqlite: LiveGatebell) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    device = codes(live_sqlite, television(live_sqlite))
    sign_in(page, live_sqlite, make_user(live_sqlite))
    page.goto(device["verification_uri_complete"])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The device is connected")
    context.close()


@pytest.fixture(scope="module")
def dora(live_sqlite: LiveGatebell) -> Person:
    """An administrator, who is shown one warning more."""
    return make_user(live_sqlite, name="dora", admin=True)


@pytest.fixture(params=LOOKS)
def look(
    request: pytest.FixtureRequest, browser: Browser, live_sqlite: LiveGatebell, dora: Person
) -> Iterator[Page]:
    """A page of hers, in one look."""
    scheme, width = request.param.split()
    context = browser.new_context(
        viewport={"width": 1280 if width == "wide" else 360, "height": 800}, color_scheme=scheme
    )
    context.set_default_timeout(30_000)
    page = context.new_page()
    sign_in(page, live_sqlite, dora)
    yield page
    context.close()


def problems_of(page: Page) -> list[str]:
    heading = page.get_by_role("heading", level=1).inner_text()
    found = [f"axe: {rule['id']}" for rule in Axe().run(page).response["violations"]]
    is_wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    found += ["scrolls sideways"] if page.evaluate(is_wider) else []
    return [f"{heading}: {problem}" for problem in found]


def test_nothing_is_wrong_with_any_of_the_pages(live_sqlite: LiveGatebell, look: Page) -> None:
    told: list[str] = []
    look.on("console", lambda said: told.append(said.text) if said.type == "error" else None)
    client = make_application(
        live_sqlite,
        bob(live_sqlite),
        name="An application with " + "very-long-words" * 4,
        confidential=False,
        scopes="api read_user openid",
    )
    problems: list[str] = []
    look.goto(f"{live_sqlite.url}/oauth/device")
    problems += problems_of(look)
    for decision in ("Approve", "Deny"):
        device = codes(live_sqlite, client, scope="api read_user openid offline_access")
        look.goto(device["verification_uri_complete"])
        problems += problems_of(look)
        look.get_by_role("button", name="Continue").click()
        problems += problems_of(look)
        look.get_by_role("button", name=decision).click()
        problems += problems_of(look)
    look.goto(f"{live_sqlite.url}/oauth/device/phone")
    problems += problems_of(look)
    look.get_by_label("Code").fill("bcdf ghjk")
    look.get_by_role("button", name="Show the QR code").click()
    problems += problems_of(look)
    assert problems == []
    assert told == []
    look.goto(f"{live_sqlite.url}/oauth/device?user_code=nonsense")
    look.get_by_role("button", name="Continue").click()
    expect(look.get_by_text("No device is waiting with this code")).to_be_visible()
    assert problems_of(look) == []
