"""The search of the header, and the keys of the pages of alerts and incidents."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice, unique
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.long]


@pytest.fixture
def endpoint(gatebell: LiveGatebell, page: Page) -> Endpoint:
    """A project with an alert; the page of the alert is open."""
    found = connect(gatebell)
    found.accepted(title=f"{unique('Giraffe')} is down", severity="critical")
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{found.project}/-/alerts/1")
    return found


@pytest.mark.usefixtures("endpoint")
def test_letters_press_the_actions_of_an_alert_and_of_its_incident(page: Page) -> None:
    page.keyboard.press("?")
    help_dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_dialog).to_contain_text("create incident")
    page.keyboard.press("r")  # The dialog is open: nothing happens.
    page.keyboard.press("Escape")
    expect(help_dialog).to_be_hidden()
    page.keyboard.press("n")
    expect(page.get_by_label("Note")).to_be_focused()
    page.keyboard.type("rare")  # In a field, letters only type.
    expect(page.get_by_label("Note")).to_have_value("rare")
    page.get_by_label("Note").fill("")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("a")
    expect(page.locator("#actions .given")).to_contain_text("Acknowledged")
    page.keyboard.press("m")
    expect(page.get_by_role("button", name="Resolve", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#more > summary")).to_be_focused()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile("/-/incidents/1$"))
    page.keyboard.press("n")
    expect(page.get_by_label("Comment", exact=True)).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("r")
    expect(page.locator("#actions .given")).to_contain_text("Closed")


def test_the_palette_opens_an_alert_with_the_keyboard_alone(
    gatebell: LiveGatebell, endpoint: Endpoint, page: Page
) -> None:
    page.goto(f"{gatebell.url}/help")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search pages")
    expect(field).to_be_focused()
    expect(page.get_by_role("option", name="Contacts")).to_be_visible()
    field.fill(f"{endpoint.project}#1")
    only = page.get_by_role("option")
    expect(only).to_have_count(1)
    expect(field).to_have_attribute("aria-activedescendant", only.get_attribute("id") or "")
    expect(only).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{endpoint.project}/-/alerts/1$"))


@pytest.mark.usefixtures("endpoint")
def test_the_palette_moves_closes_and_leads_to_all_results(page: Page) -> None:
    page.get_by_role("link", name="Search").click()
    field = page.get_by_role("combobox", name="Search pages")
    field.fill("token")
    options = page.locator("#palette [role=option]")
    expect(options.first).to_contain_text("Access tokens")
    page.keyboard.press("ArrowUp")  # From the first one, this leads to the last one.
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")  # The first one may clear the field.
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    field.fill("nothing at all")
    expect(page.locator("#palette [data-found]")).to_have_text("No results")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/-/search\?q=nothing\+at\+all$"))
    expect(page.locator("main")).to_contain_text("There are no results that you can access for")


def test_the_search_works_without_scripts(
    gatebell: LiveGatebell, endpoint: Endpoint, plain_page: Page
) -> None:
    have_signed_in(plain_page, gatebell, alice(gatebell))
    plain_page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    expect(plain_page.locator("kbd").first).to_be_hidden()
    plain_page.get_by_role("link", name="Search").click()
    plain_page.get_by_role("searchbox").fill(f"{endpoint.project}#1")
    plain_page.get_by_role("button", name="Search").click()
    plain_page.locator("main").get_by_role("link", name="is down").click()
    expect(plain_page).to_have_url(re.compile("/-/alerts/1$"))
