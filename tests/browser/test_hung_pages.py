"""A page that hangs is ended, and the call that waits for it fails."""

import pytest
from playwright.sync_api import Browser, Error

from tests.browser.hung_pages import end_hung_pages


def test_a_call_that_waits_for_a_hung_page_fails(browser: Browser) -> None:
    context = browser.new_context()
    with end_hung_pages(2), pytest.raises(Error, match="crashed"):
        context.new_page().evaluate("for (;;);")
    context.close()
