"""The page of a change sends an example with both releases, and shows what differs."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.accounts.people import alice, make_project
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell


@pytest.mark.long
def test_both_responses_are_next_to_each_other(live_sqlite: LiveGatebell, page: Page) -> None:
    token = make_token(live_sqlite, alice(live_sqlite), scopes="read_api")
    path = make_project(live_sqlite, alice(live_sqlite))
    page.goto(f"{live_sqlite.url}/help/releases/ci-job-token-scope-enabled")
    page.get_by_role("button", name="Compare both responses…").click()
    page.get_by_label("Access token").fill(token.clear)
    page.get_by_role("button", name="Compare responses").click()
    summary = page.get_by_role("status").filter(has_text="Removed: ci_job_token_scope_enabled")
    expect(summary).to_be_visible()
    before = page.get_by_role("region", name="Response before the change")
    after = page.get_by_role("region", name="Response after the change")
    expect(before.locator("mark")).to_contain_text(['"ci_job_token_scope_enabled"'])
    expect(after).to_contain_text(f'"path_with_namespace": "{path}"')
    expect(after).not_to_contain_text("ci_job_token_scope_enabled")
