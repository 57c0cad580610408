"""Real Chromium, as Debian packages it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.secrets_seen import SECRETS

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
#: Milliseconds: a machine that has much to do may stand still for seconds.
_PATIENCE = 60_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        expect.set_options(timeout=_PATIENCE)
        yield chromium
        chromium.close()


@contextmanager
def _opened(browser: Browser, *, scripts: bool) -> Iterator[BrowserContext]:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, java_script_enabled=scripts
    )
    context.set_default_timeout(_PATIENCE)
    yield context
    for cookie in context.cookies():
        SECRETS.remember(cookie.get("value"))
    context.close()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """A person with a browser of their own."""
    with _opened(browser, scripts=True) as context:
        yield context


@pytest.fixture
def plain_page(browser: Browser) -> Iterator[Page]:
    """A page of somebody whose browser runs no scripts."""
    with _opened(browser, scripts=False) as context:
        yield context.new_page()


@pytest.fixture(scope="session")
def localhost(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service that is reached by a name: browsers know no passkeys for numbers."""
    with running(new_service(host="localhost", only="web")) as live:
        yield live


@pytest.fixture
def page(visitor: BrowserContext) -> Page:
    return visitor.new_page()
