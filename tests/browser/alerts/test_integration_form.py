"""Adding an integration and mapping its payload in a real browser, with and without scripts."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import alice
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_integrations
from tests.support.service.live import LiveGatebell


@pytest.mark.spec("H2", "H3", "H10", "H11")
def test_the_form_shows_the_fields_of_the_type(live_sqlite: LiveGatebell, page: Page) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    page.goto(f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations/new")
    kind, name, api_url = (
        page.get_by_label("Type"),
        page.get_by_label("Name"),
        page.get_by_label("API URL"),
    )
    # An HTTP endpoint exists already.
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


SAMPLE = {"event": {"name": "Disk full", "level": "High"}, "recovered_at": None}
TITLE = '["event", "name"]'


@pytest.mark.long
@pytest.mark.spec("H8")
def test_the_preview_is_updated_after_every_selection(
    live_sqlite: LiveGatebell, page: Page
) -> None:
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    base = f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations/{endpoint.id}"
    page.goto(f"{base}/configure")
    page.get_by_label("Sample payload (JSON)").fill(json.dumps(SAMPLE))
    page.get_by_role("button", name="Parse sample").click()
    preview = page.get_by_role("complementary")
    # The proposed fields are based on the names of the keys.
    expect(preview).to_contain_text("Disk full")

    page.get_by_text("All fields and rules").click()
    page.get_by_label("Title: source field").select_option("")
    expect(preview).to_contain_text("New: Alert")
    page.get_by_label("Title: source field").select_option(TITLE)
    expect(preview).to_contain_text("Disk full")
    page.get_by_label("Severity: source field").select_option(label="event.level = “High”")
    expect(preview).to_contain_text("reported as “High”")
    assert list_stored_integrations(live_sqlite, endpoint.project)[0].mapping is None

    page.get_by_label("Sample payload (JSON)").fill("{}")
    expect(page.get_by_text("The sample has changed")).to_be_visible()
    expect(page.get_by_role("button", name="Save mapping")).to_be_disabled()
    page.get_by_label("Sample payload (JSON)").fill(json.dumps(SAMPLE))
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    stored = dict(list_stored_integrations(live_sqlite, endpoint.project)[0].mapping or {})
    assert set(stored.pop("rules")) == {"severity_words"}
    assert stored == {
        "title": [["event", "name"]],
        "end_time": [["recovered_at"]],
        "severity": [["event", "level"]],
    }


@pytest.mark.long
@pytest.mark.spec("H8")
def test_mapping_works_without_a_script(live_sqlite: LiveGatebell, plain_page: Page) -> None:
    page = plain_page
    endpoint = connect(live_sqlite)
    have_signed_in(page, live_sqlite, alice(live_sqlite))
    base = f"{live_sqlite.url}/{endpoint.project}/-/settings/integrations/{endpoint.id}"
    page.goto(f"{base}/configure")
    page.get_by_label("Sample payload (JSON)").fill(json.dumps(SAMPLE))
    page.get_by_role("button", name="Parse sample").click()
    page.get_by_label("Title: source field").select_option(TITLE)
    page.get_by_role("button", name="Preview on recent deliveries").click()
    expect(page.get_by_role("complementary")).to_contain_text("Disk full")
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()


@pytest.mark.spec("H8")
def test_questions_about_pasted_messages_are_answered_without_a_script(
    live_sqlite: LiveGatebell, plain_page: Page
) -> None:
    page = plain_page
    project = _paste_message(live_sqlite, page)
    page.get_by_label("“db-1”, unit").check()
    page.get_by_role("button", name="Update the proposal").click()
    expect(page.get_by_role("complementary")).to_contain_text("db-1")
    page.get_by_label("Name").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Disks")
    mapping = list_stored_integrations(live_sqlite, project)[-1].mapping
    assert (mapping or {})["hosts"] == [["unit"]]
    page.get_by_role("link", name="Configure").click()
    page.get_by_label("No, the tool sends no recoveries").check()
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    expect(page.get_by_role("complementary")).not_to_contain_text("These alerts never resolve.")


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1440])
def test_questions_are_accessible(live_sqlite: LiveGatebell, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    _paste_message(live_sqlite, page)
    assert problems_of(page) == []
    page.get_by_role("button", name="Add integration").click()
    page.get_by_role("link", name="Configure").click()
    expect(page.get_by_text("open question")).to_be_visible()
    assert problems_of(page) == []


def _paste_message(gatebell: LiveGatebell, page: Page) -> str:
    """Paste a message into the form of a new project, and press Enter in another field."""
    project = connect(gatebell).project
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{project}/-/settings/integrations/new?type=http")
    page.get_by_label("Message about a problem").fill(
        json.dumps({"rule": {"name": "Disk full"}, "unit": "db-1", "status": "active"})
    )
    page.get_by_label("Name").fill("Disks")
    page.get_by_label("Name").press("Enter")
    expect(page.get_by_role("status").filter(has_text="Unknown tool")).to_be_visible()
    return project
