"""Adding an integration in a real browser: the form asks for what the chosen type needs."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell


@pytest.mark.spec("H2", "H3", "H10", "H11")
def test_the_form_asks_for_what_the_type_needs(live_sqlite: LiveGatebell, page: Page) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    page.goto(f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations/new")
    kind, name, api_url = (
        page.get_by_label("Type"),
        page.get_by_label("Name"),
        page.get_by_label("API URL"),
    )
    # There is an HTTP endpoint already.
    expect(name).to_have_js_property("required", value=True)
    expect(api_url).to_be_hidden()
    kind.select_option("prometheus")
    expect(name).to_have_js_property("required", value=False)
    expect(api_url).to_have_value("http://prometheus.example.com")
    kind.select_option("external")
    expect(api_url).to_have_value("")
    expect(api_url).to_have_js_property("required", value=True)
    kind.select_option("http")
    page.get_by_role("button", name="Add integration").click()
    expect(name).to_be_focused()
    name.fill("Second")
    page.get_by_role("button", name="Add integration").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Second")
