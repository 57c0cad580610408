"""The page of an alert on a phone at night."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice
from tests.support.alerts.senders import connect, item, webhook
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
#: Order of the actions for all users, also for screen readers and the keyboard.
ORDER = (
    "Acknowledge",
    "Why this alert?",
    "Where to look",
    "Timeline",
    "Assigned to",
    "Raw payload",
)


@pytest.mark.long
def test_the_first_screen_has_the_actions_and_a_folded_payload(
    gatebell: LiveGatebell, page: Page
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    annotations = {"runbook_url": f"https://wiki.example/{'long' * 40}", "description": "x " * 400}
    endpoint.post(webhook(item("DiskFull", annotations=annotations)))
    have_signed_in(page, gatebell, alice(gatebell))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")

    for name in ("Acknowledge", "Resolve"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    box = page.get_by_role("button", name="Acknowledge", exact=True).bounding_box()
    assert box is not None
    assert box["height"] >= 48
    # A second tap at the place of Acknowledge must not resolve the alert.
    expect(page.locator(".thumb-bar").get_by_role("button", name="Resolve")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    expect(page.get_by_role("region", name="Raw payload")).to_be_hidden()
    page.get_by_text("Raw payload", exact=True).first.click()
    expect(page.get_by_role("region", name="Raw payload")).to_be_visible()
    told = page.locator("main").text_content() or ""
    places = [told.index(each) for each in (*ORDER, "Delete alert")]
    assert places == sorted(places)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("main")).to_contain_text("acknowledged it")
