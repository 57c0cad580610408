"""`make pictures`: the README's pictures, taken from a freshly furnished demonstration."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from demo.cast import SHOP
from demo.folder import Memory
from demo.service import ROOT, environment_of, prepare, running
from web.settings.reader import Settings, read_settings

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run")
_IMAGES = ROOT / "docs" / "images"
_PATIENCE = 60_000


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture of a page, as somebody sees it."""

    name: str
    #: Below the address of the service.
    path: str
    who: str = "alice"
    width: int = 1120
    height: int = 920
    scheme: Literal["light", "dark"] = "light"


PICTURES = (
    Picture(name="alerts", path=f"/{SHOP}/-/alerts", width=1440, height=800),
    Picture(name="alert", path=f"/{SHOP}/-/alerts/{{alert}}"),
    Picture(name="incident", path=f"/{SHOP}/-/incidents/{{incident}}"),
    Picture(name="on-call", path=f"/{SHOP}/-/on_call/schedules/1", height=860),
    Picture(
        name="on-call-telephone",
        path=f"/{SHOP}/-/on_call",
        width=360,
        height=720,
        scheme="dark",
    ),
    Picture(name="consent", path="/oauth/authorize?{request}", who="pia", width=900, height=640),
)


def main() -> None:
    """Take all pictures."""
    given = {**os.environ, "INSTANCE_PATH": str(ROOT / "build" / "pictures")}  # noqa: TID251 - as demo/__main__.py
    given.pop("DATABASE_URL", None)
    shutil.rmtree(given["INSTANCE_PATH"], ignore_errors=True)
    environment = environment_of(given)
    settings = read_settings(environment)
    memory = prepare(settings, say=_say)
    with running(settings, environment):
        take(settings, memory, PICTURES, _IMAGES)


def take(settings: Settings, memory: Memory, pictures: tuple[Picture, ...], folder: Path) -> None:
    """Take pictures of the running service, and store them in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with _chromium() as browser:
        for picture in pictures:
            with _signed_in(browser, picture, settings, memory) as page:
                page.goto(f"{settings.base_url}{_path(page, picture, settings, memory)}")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{picture.name}.png")
            _say(f"{picture.name}.png")


@contextmanager
def _chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        sys.exit("Chromium is not installed (apt-get install chromium).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def _signed_in(
    browser: Browser, picture: Picture, settings: Settings, memory: Memory
) -> Iterator[Page]:
    size: ViewportSize = {"width": picture.width, "height": picture.height}
    context = browser.new_context(
        viewport=size, device_scale_factor=1.5, color_scheme=picture.scheme
    )
    context.set_default_timeout(_PATIENCE)
    page = context.new_page()
    page.goto(f"{settings.base_url}/users/sign_in")
    page.locator("[name=login]").fill(picture.who)
    page.locator("[name=password]").fill(memory.password)
    page.locator("[name=password]").press("Enter")
    page.wait_for_url(lambda url: "sign_in" not in url)
    yield page
    context.close()


def _path(page: Page, picture: Picture, settings: Settings, memory: Memory) -> str:
    """Return the path with the numbers that it asks for."""
    found = {}
    for word, rest in (
        ("alert", "alerts?sort=severity"),
        ("incident", "incidents?status=resolved&severity=critical&assignee=alice"),
    ):
        if f"{{{word}}}" in picture.path:
            page.goto(f"{settings.base_url}/{SHOP}/-/{rest}")
            first = page.locator(f"main table a[href*='/-/{word}s/']").first
            found[word] = (first.get_attribute("href") or "").rpartition("/")[2]
    request = {
        "response_type": "code",
        "client_id": memory.application_id,
        "redirect_uri": "http://127.0.0.1:9000/callback",
        "scope": "read_user read_api",
        "state": "picture",
    }
    return picture.path.format(**found, request=urlencode(request))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
