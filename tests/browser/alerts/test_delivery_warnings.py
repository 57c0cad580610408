"""From a warning about deliveries to a fix and a repeat that joins, without scripts."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at, problems_of
from tests.support.accounts.people import alice
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell


def send(endpoint: Endpoint, number: int, *, state: str = "down") -> int:
    """Send a message whose only identifier is different each time, and return its alert."""
    body = {
        "messageId": f"7c9e6679-7425-40de-944b-e07fc1f9{number:04}",
        "check": {"name": f"Disk usage {NASTY}"},
        "server": "web-1",
        "severity": "sev-9 <b>",
        "state": state,
    }
    (alert,) = endpoint.post_json(body)
    return int(alert["iid"])


def test_a_warning_leads_to_a_fix(live_sqlite: LiveGatebell, plain_page: Page) -> None:
    page, endpoint = plain_page, connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    for number in range(3):
        send(endpoint, number)
    page.goto(
        f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations/{endpoint.id}/deliveries"
    )
    page.get_by_role("link", name="Preview the fix").click()
    expect(page.get_by_role("status")).to_contain_text("2 reports would have joined 1 alert, ")
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    expect(page.get_by_text("Repeats open new alerts")).to_have_count(0)
    assert send(endpoint, 3) == send(endpoint, 4)


@pytest.mark.long
def test_pages_with_warnings_have_no_problems(live_sqlite: LiveGatebell, page: Page) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    for number in range(4):
        send(endpoint, number, state="up" if number == 3 else "down")
    for _ in range(3):
        endpoint.post(b"{}", Authorization="Bearer wrong")
    base = f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations/{endpoint.id}"
    for at in ("configure", "deliveries", "warnings/repeats_open_alerts"):
        assert problems_at(page, f"{base}/{at}") == []
    page.goto(f"{base}/configure")
    expect(page.get_by_text("Nothing resolves these alerts").first).to_be_visible()
    page.get_by_role("link", name="Choose severities").click()
    expect(page.get_by_label("Severity of “sev-9 <b>”")).to_be_visible()
    assert problems_of(page) == []
