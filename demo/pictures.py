"""Runs `make pictures`: takes the screenshots of the README in a newly filled demo."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Page, ViewportSize

from demo.browser import open_chromium, open_signed_in_page
from demo.cast import SHOP
from demo.folder import DemoState
from demo.service import ROOT, create_fresh_environment, prepare_demo, run_service
from web.settings.environment import Settings, parse_settings

_IMAGES_FOLDER = ROOT / "docs" / "images"


@dataclass(frozen=True, kw_only=True)
class Screenshot:
    """A screenshot of a page as a user sees it."""

    name: str
    #: Path below the URL of the service.
    path: str
    who: str = "alice"
    width: int = 1120
    height: int = 920
    scale: float = 1.5
    scheme: Literal["light", "dark"] = "light"


SCREENSHOTS = (
    Screenshot(name="alerts", path=f"/{SHOP}/-/alerts", width=1440, height=800),
    Screenshot(name="alert", path=f"/{SHOP}/-/alerts/{{alert}}"),
    Screenshot(name="incident", path=f"/{SHOP}/-/incidents/{{incident}}"),
    Screenshot(name="on-call", path=f"/{SHOP}/-/on_call/schedules/1", height=860),
    Screenshot(
        name="on-call-telephone",
        path=f"/{SHOP}/-/on_call",
        width=360,
        height=720,
        scheme="dark",
    ),
    # The quickstart shows this screenshot, and has to stay a small page.
    Screenshot(
        name="consent",
        path="/oauth/authorize?{request}",
        who="pia",
        width=900,
        height=640,
        scale=1,
    ),
)


def main() -> None:
    """Take all screenshots."""
    environment = create_fresh_environment("pictures")
    settings = parse_settings(environment)
    memory = prepare_demo(settings, say=_print_line)
    with run_service(settings, environment):
        take_screenshots(settings, memory, SCREENSHOTS, _IMAGES_FOLDER)


def take_screenshots(
    settings: Settings, memory: DemoState, pictures: tuple[Screenshot, ...], folder: Path
) -> None:
    """Take screenshots of the running service and store them in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_chromium() as browser:
        for picture in pictures:
            size: ViewportSize = {"width": picture.width, "height": picture.height}
            looks = {
                "viewport": size,
                "device_scale_factor": picture.scale,
                "color_scheme": picture.scheme,
            }
            with open_signed_in_page(
                browser, settings, picture.who, memory.password, **looks
            ) as page:
                page.goto(f"{settings.base_url}{fill_path(page, picture.path, settings, memory)}")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{picture.name}.png")
            _print_line(f"{picture.name}.png")


def fill_path(page: Page, path: str, settings: Settings, memory: DemoState) -> str:
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


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
