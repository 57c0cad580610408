"""Pages that everybody sees, in a real browser."""

from playwright.sync_api import Page

from tests.support.service.live import LiveGatebell


def test_a_stranger_is_shown_where_to_sign_in(
    live_sqlite: LiveGatebell, page: Page, told: list[str]
) -> None:
    page.goto(live_sqlite.url)
    assert page.url.startswith(f"{live_sqlite.url}/users/sign_in")
    assert page.get_by_role("button", name="Sign in", exact=True).is_visible()
    assert told == []
