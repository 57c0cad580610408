"""A browser in which users of the demo are signed in."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from web.settings.environment import Settings

_BROWSER_COMMANDS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run")
_TIMEOUT_MS = 60_000


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Yield a locally installed Chromium; exit the program if there is none."""
    path = next(filter(None, map(shutil.which, _BROWSER_COMMANDS)), None)
    if path is None:
        sys.exit("Chromium is not installed (apt-get install chromium).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_BROWSER_ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def open_signed_in_page(
    browser: Browser, settings: Settings, username: str, password: str, **looks: Any
) -> Iterator[Page]:
    """Yield a page in a new browser context in which a user is signed in.

    `looks` are options for the context, such as `viewport` and `color_scheme`.
    """
    context = browser.new_context(**looks)
    context.set_default_timeout(_TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{settings.base_url}/users/sign_in")
    page.locator("[name=login]").fill(username)
    page.locator("[name=password]").fill(password)
    page.locator("[name=password]").press("Enter")
    page.wait_for_url(lambda url: "sign_in" not in url)
    yield page
    context.close()
