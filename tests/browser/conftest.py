"""Real Chromium, as Debian packages it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.browser.passkeys import Key
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS

_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: It asks for nothing of its own on the network, and runs where there is no user namespace.
_ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
#: Milliseconds: a machine that has much to do may stand still for seconds.
_PATIENCE = 60_000
_SIZE: ViewportSize = {"width": 1280, "height": 800}


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
    context = browser.new_context(viewport=_SIZE, java_script_enabled=scripts)
    context.set_default_timeout(_PATIENCE)
    yield context
    _remember_cookies(context)
    context.close()


def _remember_cookies(context: BrowserContext) -> None:
    for cookie in context.cookies():
        SECRETS.remember(cookie.get("value"))


@pytest.fixture
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """A person with a browser of their own."""
    with _opened(browser, scripts=True) as context:
        yield context


@pytest.fixture(scope="session")
def shared_page(browser: Browser) -> Iterator[Page]:
    """A page that test after test gets: to open one costs most of a second of a processor."""
    with _opened(browser, scripts=True) as context:
        yield context.new_page()


@pytest.fixture(scope="session")
def shared_plain_page(browser: Browser) -> Iterator[Page]:
    """The same in a browser that runs no scripts."""
    with _opened(browser, scripts=False) as context:
        yield context.new_page()


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    """A page of somebody whose browser remembers nothing."""
    yield shared_page
    with suppress(Error):  # where a page has no storage, or is just leaving
        shared_page.evaluate("localStorage.clear(), sessionStorage.clear()")
    _forget(shared_page)


@pytest.fixture
def plain_page(shared_plain_page: Page) -> Iterator[Page]:
    """A page of somebody whose browser runs no scripts."""
    yield shared_plain_page
    _forget(shared_plain_page)


def _forget(page: Page) -> None:
    """Make a page like a new one; what a test listens to on it, it takes back itself."""
    leave(page)
    page.set_viewport_size(_SIZE)
    page.emulate_media(color_scheme="null", reduced_motion="null")
    _remember_cookies(page.context)
    page.context.clear_cookies()
    page.context.clear_permissions()


def leave(page: Page) -> None:
    """Bring a page to rest on about:blank.

    A navigation that the test began may still be under way, and Chromium interrupts ours
    with it, or one of ours with the next: tried again until one of them arrives.
    """
    for _ in range(20):
        with suppress(Error):
            page.goto("about:blank")
            return
        page.wait_for_timeout(100)
    page.goto("about:blank")


@pytest.fixture
def told(page: Page) -> Iterator[list[str]]:
    """What pages complained of: errors of scripts, what the policy stopped, and dialogs."""
    heard: list[str] = []

    def hear_error(error: Error) -> None:
        heard.append(str(error))

    def hear_dialog(dialog: Dialog) -> None:
        heard.append(dialog.message)
        dialog.dismiss()

    def hear_console(said: ConsoleMessage) -> None:
        # A form that comes back with a problem is an error for Chromium.
        if said.type == "error" and "status of 422" not in said.text:
            heard.append(said.text)

    page.on("pageerror", hear_error)
    page.on("dialog", hear_dialog)
    page.on("console", hear_console)
    yield heard
    page.remove_listener("pageerror", hear_error)
    page.remove_listener("dialog", hear_dialog)
    page.remove_listener("console", hear_console)


@pytest.fixture
def key(page: Page) -> Iterator[Key]:
    """The authenticator of the person at the page."""
    made = Key(page)
    yield made
    made.put_away()


@pytest.fixture
def localhost(live_sqlite: LiveGatebell) -> LiveGatebell:
    """A service that is reached by a name: browsers know no passkeys for numbers."""
    return live_sqlite
