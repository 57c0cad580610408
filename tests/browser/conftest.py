"""Real Chromium, as Debian packages it."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.support.secrets_seen import SECRETS

_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: It asks for nothing of its own on the network, and runs where there is no user namespace.
_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """A person with a browser of their own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    yield context
    for cookie in context.cookies():
        SECRETS.remember(cookie.get("value"))
    context.close()


@pytest.fixture
def page(visitor: BrowserContext) -> Page:
    return visitor.new_page()
