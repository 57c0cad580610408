"""Finds problems of pages in light and dark mode and in different widths."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.looks.keyboard import keyboard_problems

#: Text that a sender may use anywhere, and that no page may display incorrectly.
NASTY = "\N{RIGHT-TO-LEFT OVERRIDE}<b>bold</b> {{7*7}} " + "very-long-word" * 12
#: Two combinations that also cover dark and wide, and light and narrow.
_LOOKS: tuple[tuple[str, Literal["light", "dark"], int], ...] = (
    ("light and wide", "light", 1280),
    ("dark and narrow", "dark", 360),
)
_AXE = Axe().axe_script
_FOLDER = Path(__file__).parent
_LOOK_AT = (_FOLDER / "axe.js").read_text(encoding="utf-8")
_WITHOUT_SCRIPTS = (_FOLDER / "without_scripts.js").read_text(encoding="utf-8")
#: Styles of texts whose contrast was sufficient.
_passed: set[int] = set()
_IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def problems_of(page: Page, further: Callable[[Page], list[str]] = lambda _: []) -> list[str]:
    """Return the problems of the open page in each look; `further` adds checks."""
    heading = page.get_by_role("heading", level=1).inner_text()
    page.evaluate(_AXE)
    problems = []
    # The first look is the current one, since changing it takes a good part of the time.
    size = page.viewport_size
    begun = size["width"] if size else 0
    looks = sorted(_LOOKS, key=lambda each: each[2] != begun)
    for look, scheme, width in looks:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        seen: dict[str, list[str]] = page.evaluate(_LOOK_AT, [list(_passed), look == looks[0][0]])
        _passed.update(map(int, seen["passed"]))
        found = seen["broken"]
        found += ["scrolls sideways"] if page.evaluate(_IS_TOO_WIDE) else []
        found += further(page)
        problems += [f"{heading}, {look}: {problem}" for problem in found]
    return problems


def problems_at(page: Page, address: str, *, status: int = 200) -> list[str]:
    """Open a page and return its problems, also without scripts."""
    told: list[str] = []

    def hear(error: object) -> None:
        told.append(f"script: {error}")

    page.on("pageerror", hear)
    answer = page.goto(address)
    assert answer is not None
    found = [] if answer.status == status else [f"status {answer.status}"]
    found += page.evaluate(_WITHOUT_SCRIPTS, answer.text())
    found += problems_of(page, keyboard_problems)
    page.remove_listener("pageerror", hear)
    return [f"{address}: {problem}" for problem in (*found, *told)]
