"""Copy buttons: complete labels on a phone, and copying on any host."""

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice, make_application
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

#: Simulates http on another host, where browsers offer no clipboard.
WITHOUT_CLIPBOARD = "Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined});"


@pytest.fixture
def page(visitor: BrowserContext) -> Page:
    """A separate page, because its initial script cannot be removed."""
    return visitor.new_page()


def open_application(page: Page, gatebell: LiveGatebell) -> str:
    """Open the page of an application, and return the application ID, which can be copied."""
    application = make_application(gatebell, alice(gatebell))
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/-/user_settings/applications/{application.id}")
    return application.client_id


def pasted(page: Page, gatebell: LiveGatebell) -> str:
    page.goto(f"{gatebell.url}/groups/new")
    field = page.get_by_label("Path")
    field.focus()
    page.keyboard.press("Control+V")
    return field.input_value()


@pytest.mark.long
@pytest.mark.parametrize("script", ["", WITHOUT_CLIPBOARD], ids=["here", "plain http elsewhere"])
def test_a_value_is_copied(live_sqlite: LiveGatebell, page: Page, script: str) -> None:
    page.context.grant_permissions(["clipboard-write", "clipboard-read"])
    page.add_init_script(script)
    client_id = open_application(page, live_sqlite)
    button = page.get_by_role("button", name="Copy Application ID")
    button.click()
    page.get_by_text("Copied").wait_for()
    assert button.or_(page.get_by_role("button", name="Copied")).first.is_visible()
    assert pasted(page, live_sqlite) == client_id


def test_a_value_is_selected_if_it_cannot_be_copied(live_sqlite: LiveGatebell, page: Page) -> None:
    page.add_init_script(f"{WITHOUT_CLIPBOARD} Document.prototype.execCommand = () => false;")
    client_id = open_application(page, live_sqlite)
    page.get_by_role("button", name="Copy Application ID").click()
    page.get_by_text("Selected: press Ctrl+C").wait_for()
    assert page.evaluate("getSelection().toString()") == client_id


@pytest.mark.long
def test_labels_of_copy_buttons_are_not_wrapped(live_sqlite: LiveGatebell, page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    endpoint = connect(live_sqlite, kind="prometheus")  # Its snippets have long titles.
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    settings = f"{live_sqlite.url}/{endpoint.project}/-/settings"
    page.goto(f"{settings}/integrations/{endpoint.id}/credentials")
    page.eval_on_selector_all("details.program", "all => all.forEach(one => { one.open = true; })")
    words = page.locator("[data-copy-words]")
    assert words.count() > 0
    for index in range(words.count()):
        assert words.nth(index).evaluate("word => word.getClientRects().length") == 1
