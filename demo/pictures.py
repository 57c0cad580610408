"""Runs `make pictures`: takes the screenshots of the README in a newly filled demo."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Page, ViewportSize

from demo.browser import chromium, signed_in
from demo.cast import SHOP
from demo.folder import Memory
from demo.service import ROOT, fresh_environment, prepare, running
from web.settings.reader import Settings, read_settings

_IMAGES = ROOT / "docs" / "images"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A screenshot of a page as a user sees it."""

    name: str
    #: Path below the URL of the service.
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
    """Take all screenshots."""
    environment = fresh_environment("pictures")
    settings = read_settings(environment)
    memory = prepare(settings, say=_say)
    with running(settings, environment):
        take(settings, memory, PICTURES, _IMAGES)


def take(settings: Settings, memory: Memory, pictures: tuple[Picture, ...], folder: Path) -> None:
    """Take screenshots of the running service and store them in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for picture in pictures:
            size: ViewportSize = {"width": picture.width, "height": picture.height}
            looks = {"viewport": size, "device_scale_factor": 1.5, "color_scheme": picture.scheme}
            with signed_in(browser, settings, picture.who, memory.password, **looks) as page:
                page.goto(f"{settings.base_url}{path_of(page, picture.path, settings, memory)}")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{picture.name}.png")
            _say(f"{picture.name}.png")


def path_of(page: Page, path: str, settings: Settings, memory: Memory) -> str:
    """Return a path with its placeholders `{alert}`, `{incident}` and `{request}` filled in."""
    found = {}
    for word, rest in (
        ("alert", "alerts?sort=severity"),
        ("incident", "incidents?status=resolved&severity=critical&assignee=alice"),
    ):
        if f"{{{word}}}" in path:
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
    return path.format(**found, request=urlencode(request))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
