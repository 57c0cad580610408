"""Connecting a known tool, from *Add integration* to a resolved test alert."""

import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import alice, make_project
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts, list_stored_integrations
from tests.support.service.live import LiveGatebell

#: Longest time from *Add integration* to a resolved test alert, in seconds, on a busy machine.
_MAX_SECONDS = 60
TOOLS = (
    ("uptime", "Uptime Kuma", "Disk almost full"),
    ("grafana", "Grafana", "web-1 does not answer"),
    ("zabb", "Zabbix", "Disk almost full"),
)


@pytest.mark.parametrize(("search", "name", "title"), TOOLS)
def test_a_tool_is_connected_in_a_few_clicks(
    live_sqlite: LiveGatebell, page: Page, search: str, name: str, title: str
) -> None:
    project = make_project(live_sqlite, alice(live_sqlite))
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    page.goto(f"{live_sqlite.url}/{project}/-/settings/integrations")
    started = time.monotonic()
    page.get_by_role("link", name="Add the first integration").click()
    expect(page.get_by_label("Search tools")).to_be_focused()
    page.keyboard.type(search)
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Waiting for the first delivery")).to_be_visible()
    page.get_by_role("link", name="Send test alert").click()
    page.get_by_role("button", name="Send test alert").click()
    expect(page.locator("main")).to_contain_text("Opened a new alert")
    page.get_by_role("button", name="Send recovery").click()
    expect(page.locator("main")).to_contain_text("Resolved an open alert")
    assert time.monotonic() - started < _MAX_SECONDS
    assert [(each.title, each.status) for each in list_stored_alerts(live_sqlite, project)] == [
        (title, "resolved")
    ]


@pytest.mark.long
def test_tools_are_searched_with_the_keyboard(live_sqlite: LiveGatebell, page: Page) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    page.goto(f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations")
    assert problems_of(page) == []
    page.get_by_role("link", name="Add integration").click()
    assert problems_of(page) == []
    tiles = page.locator("main li:visible a.tile")
    every = tiles.count()
    search = page.get_by_label("Search tools")
    search.fill("CLOUD sns")
    # The tiles of SNS, and the tiles for tools that are not listed.
    expect(tiles).to_have_count(4)
    expect(page.get_by_text("2 matching tools")).to_be_visible()
    expect(page.get_by_role("heading", name="Uptime")).to_be_hidden()
    search.fill("")
    expect(tiles).to_have_count(every)
    search.fill("pingdom")
    search.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("P Connect Pingdom")
    assert problems_of(page) == []


@pytest.mark.long
def test_a_tool_is_connected_without_a_script(live_sqlite: LiveGatebell, plain_page: Page) -> None:
    page, project = plain_page, make_project(live_sqlite, alice(live_sqlite))
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    page.goto(f"{live_sqlite.url}/{project}/-/settings/integrations/new/tools")
    page.get_by_label("Search tools").fill("kuma")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("1 tool matching")).to_be_visible()
    page.get_by_role("link", name="Uptime Kuma").click()
    page.get_by_label("Name").fill("Status page")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="2. Add a notification")).to_be_visible()
    page.get_by_role("link", name="Send test alert").click()
    page.get_by_role("button", name="Send test alert").click()
    page.get_by_role("button", name="Send recovery").click()
    expect(page.locator("main")).to_contain_text("Resolved an open alert")
    assert [each.name for each in list_stored_integrations(live_sqlite, project)] == ["Status page"]
