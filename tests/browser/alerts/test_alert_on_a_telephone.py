"""The page of an alert on a phone at night."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
#: Order of the parts for all users, also for screen readers and the keyboard.
ORDER = (
    "Acknowledge",
    "checkout · db-1",
    "Runbook",
    "This project has no escalation policy",
    "Why this alert?",
    "Where to look",
    "Timeline",
    "Raw payload",
)


def show_alert(gatebell: LiveGatebell, page: Page) -> Endpoint:
    """Open an alert with long fields, and show its page on a phone."""
    endpoint = connect(gatebell, kind="prometheus")
    annotations = {
        "runbook_url": f"https://wiki.example/{'long' * 40}",
        "dashboard": "https://graphs.example/d/1",
        "description": "The disk is nearly full. " * 30,
        "title": "The disk of the database is nearly full and nothing is left for its logs " * 2,
    }
    labels = {"service": "checkout", "instance": "db-1"}
    endpoint.post(webhook(item("DiskFull", labels=labels, annotations=annotations)))
    have_signed_in(page, gatebell, alice(gatebell))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    return endpoint


@pytest.mark.long
def test_the_first_screen_says_what_broke_where_to_look_and_who_is_paged(
    gatebell: LiveGatebell, page: Page
) -> None:
    show_alert(gatebell, page)
    for part in (
        page.locator(".state-line"),
        page.locator("#where"),
        page.locator(".gist"),
        page.get_by_role("link", name="Runbook"),
        page.get_by_role("link", name="Dashboard"),
        page.locator("#paged"),
        page.get_by_role("button", name="Acknowledge", exact=True),
        page.locator("#more > summary"),
    ):
        expect(part).to_be_in_viewport(ratio=1)
    bar = page.locator("#actions").bounding_box()
    last = page.locator("#paged").bounding_box()
    assert bar is not None
    assert last is not None
    assert last["y"] + last["height"] <= bar["y"]
    assert bar["y"] + bar["height"] == 844
    lines = "node => node.clientHeight / parseFloat(getComputedStyle(node).lineHeight)"
    assert round(page.locator(".gist").evaluate(lines)) == 3
    box = page.get_by_role("button", name="Acknowledge", exact=True).bounding_box()
    assert box is not None
    assert box["height"] >= 48
    # The footer of the page is not below the bar.
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    footer = page.locator(".site-footer").bounding_box()
    assert footer is not None
    assert footer["y"] + footer["height"] <= bar["y"] + 1


@pytest.mark.long
def test_the_payload_is_folded_and_the_parts_have_one_order(
    gatebell: LiveGatebell, page: Page
) -> None:
    show_alert(gatebell, page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    expect(page.get_by_role("region", name="Raw payload")).to_be_hidden()
    page.get_by_text("Raw payload", exact=True).first.click()
    expect(page.get_by_role("region", name="Raw payload")).to_be_visible()
    told = page.locator("main").text_content() or ""
    places = [told.find(each) for each in ("#1", *ORDER[1:], "Delete alert")]
    assert -1 not in places
    assert places == sorted(places)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#actions .given")).to_contain_text("Acknowledged")
    expect(page.locator("#actions").get_by_role("button", name="Undo")).to_be_visible()


@pytest.mark.long
def test_the_menu_of_a_phone_fits_the_screen_without_scripts(
    gatebell: LiveGatebell, plain_page: Page
) -> None:
    show_alert(gatebell, plain_page)
    plain_page.locator("#more > summary").click()
    panel = plain_page.locator("#more > .menu-panel").bounding_box()
    assert panel is not None
    assert panel["y"] >= 0
    for name in ("Resolve", "Ignore", "Assign to me", "Create incident"):
        expect(plain_page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    # Keyboard shortcuts are not shown, because no script handles them.
    expect(plain_page.locator("#more kbd").first).to_be_hidden()
    plain_page.get_by_role("button", name="1 hour").click()
    expect(plain_page.locator("main")).to_contain_text("Snoozed until")
