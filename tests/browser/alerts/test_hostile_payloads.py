"""Texts of hostile senders on every page of an integration's maintainers."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.alerts.test_alert_list import HOSTILE, check_harmless
from tests.browser.doors import have_signed_in
from tests.support.accounts.people import alice
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.database.stored import list_stored_deliveries
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
OWNED = "document.title='owned'"
#: Option for the value of an unexpected key.
CHOICE = json.dumps([HOSTILE], ensure_ascii=False)
#: All fields of the format, and an unexpected key.
PAYLOAD = dict.fromkeys(
    (
        *("title", "description", "start_time", "end_time", "service", "monitoring_tool"),
        *("hosts", "severity", "fingerprint", "platform_environment_name", "runbook", HOSTILE),
    ),
    HOSTILE,
) | {"deep": [{HOSTILE: [HOSTILE]}], "fingerprint": {HOSTILE: HOSTILE}}


@pytest.fixture
def endpoint(gatebell: LiveGatebell, page: Page) -> Endpoint:
    """An endpoint with a hostile name, whose owner is signed in."""
    made = connect(gatebell, name=HOSTILE[:100])
    have_signed_in(page, gatebell, alice(gatebell))
    return made


def integration(endpoint: Endpoint, tab: str) -> str:
    return f"{endpoint.service}/{endpoint.project}/-/settings/integrations/{endpoint.id}/{tab}"


def check(page: Page) -> None:
    check_harmless(page)
    assert OWNED in page.locator("main").inner_html(), "the page shows nothing hostile"


@pytest.mark.long
@pytest.mark.spec("H1", "H5")
def test_the_delivery_log_and_integration_pages_escape_payloads(
    gatebell: LiveGatebell, page: Page, endpoint: Endpoint, told: list[str]
) -> None:
    for body in (json.dumps(PAYLOAD).encode(), HOSTILE.encode()):
        endpoint.post(body, User_Agent=HOSTILE.encode("ascii", "ignore").decode())
    metrics = connect(gatebell, endpoint.project, kind="prometheus", name=f"2{HOSTILE}"[:100])
    metrics.post(webhook(item("x", startsAt=HOSTILE, endsAt=HOSTILE), {HOSTILE: HOSTILE}))
    metrics.post(json.dumps({HOSTILE: HOSTILE}).encode())
    page.goto(f"{endpoint.service}/{endpoint.project}/-/settings/integrations")
    check(page)
    for tab in ("configure", "credentials", "deliveries", "delete"):
        page.goto(integration(endpoint, tab))
        check(page)
    for delivery in list_stored_deliveries(gatebell, endpoint.project):
        of = endpoint if delivery.integration_id == endpoint.id else metrics
        page.goto(integration(of, f"deliveries/{delivery.id}"))
        check(page)
    assert told == []


@pytest.mark.long
@pytest.mark.spec("H6")
@pytest.mark.parametrize("button", ["Dry run", "Send test alert"])
def test_the_result_of_a_test_alert_escapes_the_payload(
    page: Page, endpoint: Endpoint, told: list[str], button: str
) -> None:
    page.goto(integration(endpoint, "test"))
    page.get_by_label("Payload").fill(json.dumps(PAYLOAD))
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_text("1 alert was parsed")).to_be_visible()
    check(page)
    page.get_by_label("Payload").fill(HOSTILE)
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator(".field.has-error")).to_be_visible()
    check(page)
    assert told == []


@pytest.mark.long
@pytest.mark.spec("H8")
def test_the_sample_its_tree_and_its_previews_escape_the_payload(
    gatebell: LiveGatebell, page: Page, endpoint: Endpoint, told: list[str]
) -> None:
    endpoint.post(json.dumps(PAYLOAD).encode())
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    page.goto(integration(endpoint, f"configure?sample={delivery.id}"))
    check(page)
    page.get_by_text("All fields and rules").click()
    for field in ("Title", "Severity", "Description", "Start time", "Hosts"):
        with page.expect_response(lambda answer: answer.url.endswith("/preview")):
            page.get_by_label(f"{field}: source field").select_option(CHOICE)
    expect(page.get_by_role("complementary")).to_contain_text("Severity source")
    check(page)
    page.get_by_role("button", name="Preview on recent deliveries").click()
    expect(page.get_by_text("Recent deliveries parsed with this draft")).to_be_visible()
    check(page)
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    check(page)
    assert told == []


def test_search_and_filter_texts_are_escaped(
    page: Page, endpoint: Endpoint, told: list[str]
) -> None:
    endpoint.accepted(title="x")
    page.goto(f"{endpoint.service}/{endpoint.project}/-/alerts")
    page.get_by_label("Search titles").fill(HOSTILE[:190])
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No matching open alerts")).to_be_visible()
    check(page)
    assert told == []
