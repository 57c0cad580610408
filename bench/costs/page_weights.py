"""Sizes and load times of the main pages: `make bench-pages`.

The benchmark fills a separate demo database. It visits each page in Chromium, first with an empty
cache and then with a filled one. To time the server, it alternates requests for the page and for
`/healthz`. The result is a table.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import requests
from playwright.sync_api import Browser, Page

from bench.machine import wait_for_calm
from demo.browser import open_chromium, open_signed_in_page
from demo.cast import GROUP_PATH, SHOP
from demo.folder import DemoState
from demo.pictures import fill_path
from demo.service import create_fresh_environment, prepare_demo, run_service
from web.settings.environment import Settings, parse_settings

_ROUNDS = 15
_PAGE_TIMEOUT_SECONDS = 30.0
_KIB = 1024
_OK = 200
#: Script that returns Chromium's sizes in bytes and times in ms for the page and its resources.
_MEASURE_SCRIPT = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const files = performance.getEntriesByType("resource");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return {
    requests: 1 + files.filter((file) => file.transferSize > 0).length,
    transferred: page.transferSize + files.reduce((sum, file) => sum + file.transferSize, 0),
    html: page.decodedBodySize,
    elements: document.querySelectorAll("*").length,
    painted: paint ? paint.startTime : 0,
  };
}"""


@dataclass(frozen=True, kw_only=True)
class MainPage:
    """A page that many users visit, or that users visit in a hurry."""

    name: str
    #: Path below the service's URL, with the placeholders of `demo.pictures.fill_path`.
    path: str
    who: str = "alice"


MAIN_PAGES = (
    MainPage(name="home", path="/"),
    MainPage(name="alerts of a project", path=f"/{SHOP}/-/alerts"),
    MainPage(name="alerts of all projects", path="/-/alerts"),
    MainPage(name="alert", path=f"/{SHOP}/-/alerts/{{alert}}"),
    MainPage(name="incident", path=f"/{SHOP}/-/incidents/{{incident}}"),
    MainPage(name="on call", path=f"/{SHOP}/-/on_call"),
    MainPage(name="project", path=f"/{SHOP}"),
    MainPage(name="integrations", path=f"/{SHOP}/-/settings/integrations", who="marta"),
    MainPage(name="add integration", path=f"/{SHOP}/-/settings/integrations/new", who="marta"),
    MainPage(name="members", path=f"/groups/{GROUP_PATH}/-/members", who="olivia"),
    MainPage(name="consent", path="/oauth/authorize?{request}", who="pia"),
    MainPage(name="device code", path="/oauth/device"),
    MainPage(name="applications", path="/-/user_settings/applications"),
    MainPage(name="authorized applications", path="/-/user_settings/authorized_applications"),
    MainPage(name="release schedule", path="/help/releases"),
    MainPage(name="help", path="/help"),
)


@dataclass(frozen=True, kw_only=True)
class PageWeight:
    """The measurements of a page."""

    page: MainPage
    #: Measurements with an empty cache.
    first: dict[str, Any]
    #: Measurements with the cache of the first visit.
    again: dict[str, Any]
    #: Medians of the server's response times in milliseconds.
    server_ms: float
    health_ms: float

    def row(self) -> str:
        """Return a row of the table."""
        cells = (
            self.page.name,
            f"{self.first['transferred'] / _KIB:.0f}",
            f"{self.first['requests']}",
            f"{self.again['transferred'] / _KIB:.0f}",
            f"{self.again['requests']}",
            f"{self.first['html'] / _KIB:.0f}",
            f"{self.first['elements']:,}",
            f"{self.first['painted']:.0f}",
            f"{self.again['painted']:.0f}",
            f"{self.server_ms:.1f}",
            f"{self.server_ms / self.health_ms:.0f}",
        )
        return f"| {' | '.join(cells)} |"


TABLE_HEAD = (
    "| page | first visit, KiB | requests | second visit, KiB | requests | HTML, KiB | elements "
    "| first paint, ms | second visit, ms | server, ms | server ÷ health check |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> None:
    """Fill a demo database, measure all pages and print the table."""
    environment = create_fresh_environment("page-weights")
    settings = parse_settings(environment)
    memory = prepare_demo(settings, say=_print_line)
    with run_service(settings, environment):
        _print_line(f"Busy processors before the run: {wait_for_calm(_PAGE_TIMEOUT_SECONDS):.2f}")
        _print_line(TABLE_HEAD)
        for weight in measure_pages(settings, memory, MAIN_PAGES):
            _print_line(weight.row())


def measure_pages(
    settings: Settings, memory: DemoState, pages: Sequence[MainPage]
) -> Iterator[PageWeight]:
    """Yield the size and load time of each page."""
    with open_chromium() as browser:
        for page in pages:
            yield _measure_page(browser, settings, memory, page)


def _measure_page(
    browser: Browser, settings: Settings, memory: DemoState, page: MainPage
) -> PageWeight:
    with open_signed_in_page(browser, settings, page.who, memory.password) as opened:
        state = opened.context.storage_state()
        address = settings.base_url + fill_path(opened, page.path, settings, memory)
    context = browser.new_context(storage_state=state)
    try:
        visit = context.new_page()
        first = _visit_page(visit, address)
        visit.goto("about:blank")
        again = _visit_page(visit, address)
        cookies = {each["name"]: each["value"] for each in context.cookies()}
    finally:
        context.close()
    server_ms, health_ms = _measure_server_times(settings, address, cookies)
    return PageWeight(page=page, first=first, again=again, server_ms=server_ms, health_ms=health_ms)


def _visit_page(page: Page, address: str) -> dict[str, Any]:
    answer = page.goto(address)
    if answer is None or answer.status != _OK:
        sys.exit(f"{address}: {answer and answer.status}")
    page.wait_for_load_state("networkidle")
    found: dict[str, Any] = page.evaluate(_MEASURE_SCRIPT)
    return found


def _measure_server_times(
    settings: Settings, address: str, cookies: dict[str, str]
) -> tuple[float, float]:
    """Return the median times of the page and of the health check, with alternating requests."""
    times: tuple[list[float], list[float]] = ([], [])
    with requests.Session() as session:
        session.trust_env = False
        session.cookies.update(cookies)
        for _ in range(_ROUNDS):
            for each, taken in zip((address, f"{settings.base_url}/healthz"), times, strict=True):
                began = perf_counter()
                answer = session.get(each, timeout=60)
                taken.append((perf_counter() - began) * 1000)
                if answer.status_code != _OK:
                    sys.exit(f"{each}: {answer.status_code}")
    return median(times[0]), median(times[1])


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
