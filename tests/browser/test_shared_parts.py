"""Parts of every page: exact times, messages that stay visible, and confirmations."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice, make_user
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from web.pages.templating import format_short_time

pytestmark = pytest.mark.one_database("sqlite")

SHORT = re.compile(r"^\d\d:\d\d \((.* ago|just now)\)$")


@pytest.fixture
def endpoint(gatebell: LiveGatebell) -> Endpoint:
    """A project with more alerts than fit on a screen."""
    made = connect(gatebell)
    for number in range(15):
        made.accepted(title=f"alert {number}")
    return made


@pytest.mark.long
def test_exact_times_need_no_mouse(gatebell: LiveGatebell, page: Page, endpoint: Endpoint) -> None:
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts")
    first, second = (page.locator(".when time").nth(number) for number in (0, 1))
    exact = first.get_attribute("title") or ""
    expect(first).to_have_text(SHORT)
    first.click()  # A tap on a phone is a click.
    expect(first).to_have_text(exact)
    expect(second).to_have_text(SHORT)
    page.get_by_role("button", name="Exact").focus()
    page.keyboard.press("Enter")
    expect(second).to_have_text(second.get_attribute("title") or "")
    page.reload()
    expect(second).to_have_text(second.get_attribute("title") or "")
    page.get_by_role("button", name="Short", exact=True).click()
    expect(second).to_have_text(SHORT)


#: Adds a time to the page, at an offset in seconds before the page's time; its script adds the
#: text.
_ADD_TIME = """
seconds => {
  const time = document.createElement("time");
  const madeAt = Date.parse(document.documentElement.dataset.now);
  time.dateTime = new Date(madeAt - seconds * 1000).toISOString();
  time.dataset.short = "";
  time.title = "exact";
  time.id = `added-${seconds}`;
  document.getElementById("main").append(time);
}
"""


def test_the_script_formats_times_as_the_server_does(
    gatebell: LiveGatebell, page: Page, told: list[str]
) -> None:
    page.clock.set_fixed_time(datetime.now(UTC))
    page.goto(gatebell.url)
    assert page.url.startswith(f"{gatebell.url}/users/sign_in")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    assert told == []
    now = datetime.fromisoformat(page.locator("html").get_attribute("data-now") or "")
    lengths = (
        -70_000_000,
        -5_000_000,
        -90_000,
        -7_190,
        -150,
        -40,
        -6,
        3,
        150,
        4_000,
        90_000,
        3_000_000,
        70_000_000,
    )
    words = {length: format_short_time(now - timedelta(seconds=length), now) for length in lengths}
    for length, said in words.items():
        page.evaluate(_ADD_TIME, length)
        expect(page.locator(f"#added-{length}")).to_have_text(said)


@pytest.mark.long
def test_without_scripts_exact_times_are_shown(gatebell: LiveGatebell, plain_page: Page) -> None:
    have_signed_in(plain_page, gatebell, alice(gatebell))
    plain_page.goto(f"{gatebell.url}/-/user_settings/activity")
    time = plain_page.locator("td time").first
    shown = time.evaluate("time => getComputedStyle(time, '::after').content")
    assert (time.get_attribute("title") or "-") in shown


@pytest.mark.long
def test_the_message_after_a_key_is_visible_and_can_be_dismissed(
    gatebell: LiveGatebell, page: Page, endpoint: Endpoint
) -> None:
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts")
    rows = page.locator("[data-alert-row]")
    rows.last.get_by_role("link").focus()
    page.keyboard.press("a")
    told = page.locator(".flashes")
    expect(told).to_contain_text("1 alert is now acknowledged.")
    expect(rows.last.get_by_role("link")).to_be_focused()
    expect(told).to_be_in_viewport(ratio=1)
    expect(rows.last).to_be_in_viewport()
    told.get_by_role("button", name="Dismiss").click()
    expect(told).to_have_count(0)


@pytest.mark.long
def test_a_confirmation_stays_in_place_and_can_be_cancelled(
    gatebell: LiveGatebell, page: Page
) -> None:
    have_signed_in(page, gatebell, make_user(gatebell, name="boss", admin=True))
    page.goto(f"{gatebell.url}/admin/users?search={alice(gatebell).email}")
    page.get_by_role("link", name=alice(gatebell).username, exact=True).click()
    opener = page.locator("summary", has_text="Lock account")
    opener.scroll_into_view_if_needed()
    before = opener.bounding_box()
    opener.click()
    assert opener.bounding_box() == before
    question = page.get_by_text("loses access immediately")
    expect(question).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    expect(question).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    page.keyboard.press("Escape")
    expect(page.locator("details.confirm[open]")).to_have_count(0)


#: Returns the widths by which the tables of text on the page are wider than their containers.
_HIDDEN_WIDTHS = """
() => [...document.querySelectorAll(".help-table:has(table.cards)")]
  .map(each => each.scrollWidth - each.clientWidth)
"""


@pytest.mark.long
def test_wide_tables_of_the_help_fit_on_a_phone(gatebell: LiveGatebell, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("log-events", "settings", "errors"):
        page.goto(f"{gatebell.url}/help/docs/{name}")
        assert set(page.evaluate(_HIDDEN_WIDTHS)) == {0}, name
        table = page.locator("table.cards").first
        # The changed layout keeps the table for screen readers.
        expect(table.get_by_role("columnheader").first).to_be_attached()
        expect(table.get_by_role("cell").last).to_be_visible()


@pytest.mark.long
def test_a_phone_has_the_navigation_at_the_lower_edge_unless_the_page_has_a_bar(
    gatebell: LiveGatebell, page: Page, endpoint: Endpoint
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{endpoint.project}")
    bar = page.get_by_role("navigation", name="Main").bounding_box()
    header = page.get_by_role("banner").locator(".wrap").bounding_box()
    assert bar is not None
    assert header is not None
    assert bar["y"] + bar["height"] == 844
    assert header["height"] <= 56
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    footer = page.get_by_role("contentinfo").bounding_box()
    assert footer is not None
    assert footer["y"] + footer["height"] <= bar["y"] + 1
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    page.locator(".account-menu > summary").click()
    expect(page.locator(".menu-panel .phone-only").first).to_be_visible()


@pytest.mark.long
def test_paper_shows_the_payload_in_light_colors_and_no_buttons(
    gatebell: LiveGatebell, page: Page, endpoint: Endpoint
) -> None:
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("#payload")).to_be_visible()
    for hidden in (".site-header", ".site-footer", ".tabs", "main button"):
        assert page.locator(f"{hidden}:visible").count() == 0, hidden
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
