"""Fixtures for Chromium as packaged by Debian."""

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
#: Options without own network requests, for machines without user namespaces.
_ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
#: Timeout in milliseconds: a busy machine may stop for seconds.
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
    """A new browser context."""
    with _opened(browser, scripts=True) as context:
        yield context


@pytest.fixture(scope="session")
def shared_page(browser: Browser) -> Iterator[Page]:
    """A page that all tests share, since opening one takes most of a second of processor time."""
    with _opened(browser, scripts=True) as context:
        yield context.new_page()


@pytest.fixture(scope="session")
def shared_plain_page(browser: Browser) -> Iterator[Page]:
    """A shared page in a browser without scripts."""
    with _opened(browser, scripts=False) as context:
        yield context.new_page()


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    """A page of a browser without cookies and storage."""
    yield shared_page
    with suppress(Error):  # Some pages have no storage, and others are just navigating.
        shared_page.evaluate("localStorage.clear(), sessionStorage.clear()")
    _forget(shared_page)


@pytest.fixture
def plain_page(shared_plain_page: Page) -> Iterator[Page]:
    """A page of a browser without scripts."""
    yield shared_plain_page
    _forget(shared_plain_page)


def _forget(page: Page) -> None:
    """Reset a page; tests remove their own listeners."""
    leave(page)
    page.set_viewport_size(_SIZE)
    page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    _remember_cookies(page.context)
    page.context.clear_cookies()
    page.context.clear_permissions()


def leave(page: Page) -> None:
    """Bring a page to rest on about:blank.

    A navigation of the test may still be running, and Chromium interrupts our navigation with it,
    or the next one. So this is repeated until a navigation arrives.
    """
    for _ in range(20):
        with suppress(Error):
            page.goto("about:blank")
            return
        page.wait_for_timeout(100)
    page.goto("about:blank")


@pytest.fixture
def told(page: Page) -> Iterator[list[str]]:
    """Errors of scripts, violations of the content security policy, and dialogs of pages."""
    heard: list[str] = []

    def hear_error(error: Error) -> None:
        heard.append(str(error))

    def hear_dialog(dialog: Dialog) -> None:
        heard.append(dialog.message)
        dialog.dismiss()

    def hear_console(said: ConsoleMessage) -> None:
        # Chromium logs an error for a form that is returned with a problem.
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
    """The authenticator of the user at the page."""
    made = Key(page)
    yield made
    made.put_away()


@pytest.fixture
def localhost(live_sqlite: LiveGatebell) -> LiveGatebell:
    """A service whose URL has a host name: browsers do not support passkeys for IP addresses."""
    return live_sqlite
