"""The API page: reading, trying out requests with a token or OAuth, and use without scripts."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import alice, make_application
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def open_operation(page: Page, gatebell: LiveGatebell, tag: str, path: str) -> None:
    page.goto(f"{gatebell.url}/help/api")
    page.get_by_role("heading", name=tag, exact=True).get_by_role("link").click()
    page.get_by_role("button", name=path).first.click()
    expect(page.get_by_role("button", name="Try it out")).to_be_visible()


def execute(page: Page) -> None:
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()


@pytest.mark.long
def test_the_api_page_and_an_operation_have_no_problems(
    live_sqlite: LiveGatebell, page: Page, told: list[str]
) -> None:
    open_operation(page, live_sqlite, "Environments", "/api/v4/projects/{id}/environments")
    assert problems_of(page) == []
    assert told == []


@pytest.mark.long
def test_a_request_is_tried_out_with_a_personal_token(
    live_sqlite: LiveGatebell, page: Page, told: list[str]
) -> None:
    person = alice(live_sqlite)
    open_operation(page, live_sqlite, "Users", "/api/v4/user")
    page.locator(".btn.authorize").click()
    expect(page.get_by_label("client_id:").first).to_be_focused()
    page.get_by_label("auth-bearer-value").first.fill(make_token(live_sqlite, person).clear)
    page.get_by_role("button", name="Apply credentials").first.click()
    page.get_by_role("button", name="Close").first.click()
    execute(page)
    expect(page.locator(".live-responses-table")).to_contain_text(f'"{person.username}"')
    assert told == []


@pytest.mark.long
def test_a_request_is_tried_out_by_oauth(
    live_sqlite: LiveGatebell, visitor: BrowserContext
) -> None:
    person, page = alice(live_sqlite), visitor.new_page()
    application = make_application(
        live_sqlite,
        person,
        redirect_uris=(f"{live_sqlite.url}/help/api/authorized",),
        confidential=False,
        scopes="read_user",
    )
    have_signed_in(page, live_sqlite, person)
    open_operation(page, live_sqlite, "Users", "/api/v4/user")
    page.locator(".btn.authorize").click()
    page.get_by_label("client_id:").first.fill(application.client_id)
    page.get_by_label("read_user").first.check()
    with visitor.expect_page() as opened:
        page.get_by_role("button", name="Apply given OAuth2 credentials").first.click()
    opened.value.get_by_role("button", name="Authorize").click()
    expect(page.get_by_text("Logout").first).to_be_visible()
    page.get_by_role("button", name="Close").first.click()
    execute(page)
    expect(page.locator(".live-responses-table")).to_contain_text(f'"{person.username}"')


def test_without_scripts_the_page_lists_every_operation(
    live_sqlite: LiveGatebell, plain_page: Page
) -> None:
    document = live_sqlite.http().get(f"{live_sqlite.url}/api/openapi.json").json()
    plain_page.goto(f"{live_sqlite.url}/help/api")
    listed = plain_page.locator("section li code").all_text_contents()
    described = [
        f"{method.upper()} {path}" for path, each in document["paths"].items() for method in each
    ]
    assert sorted(listed) == sorted(described)
    plain_page.get_by_role("link", name="openapi.json").click()
    assert plain_page.url == f"{live_sqlite.url}/api/openapi.json"
    plain_page.goto(f"{live_sqlite.url}/help/api/alerts")
    of_topic = plain_page.locator("#api-viewer li code").all_text_contents()
    assert "GET /api/v4/projects/{id}/alert_management_alerts" in of_topic
    assert set(of_topic) < set(listed)


def test_the_page_of_a_topic_loads_only_its_operations(
    live_sqlite: LiveGatebell, page: Page
) -> None:
    with page.expect_response("**/api/openapi.json*") as loaded:
        page.goto(f"{live_sqlite.url}/help/api/alerts")
    expect(page.locator(".opblock").first).to_be_visible(timeout=5_000)
    operations = [each for path in loaded.value.json()["paths"].values() for each in path.values()]
    assert {each["tags"][0] for each in operations} == {"Alerts"}
    expect(page.locator(".opblock")).to_have_count(len(operations))
