"""Finds problems of pages for keyboard users."""

from pathlib import Path

from playwright.sync_api import Page

_FOLDER = Path(__file__).parent
_LOOK_AT = (_FOLDER / "keyboard.js").read_text(encoding="utf-8")
_WALK = (_FOLDER / "walk.js").read_text(encoding="utf-8")
#: Maximum number of rounds: a date needs several presses of Tab, and more are a trap.
_MOST_ROUNDS = 4
#: Boxes that cover other elements when they are open: their numbers and kinds.
_OVERLAYS = """(known) => {
    const boxes = [...document.querySelectorAll("details:not([open])")];
    return boxes.flatMap((each, number) => {
        if (known.includes(each.className) || !each.checkVisibility()) return [];
        each.open = true;
        const isOver = [...each.children].some(
            part => getComputedStyle(part).position === "absolute");
        each.open = false;
        return isOver ? [[number, each.className]] : [];
    });
}"""
_FOCUS = """number => document.querySelectorAll("details:not([open])")[number]
    .firstElementChild.focus()"""
_CLOSED = "!document.activeElement.matches('details:not([open]) > summary')"
#: Frames of pages that were already checked.
_frames: set[str] = set()
#: Kinds of places where the Tab key was tested, and kinds of boxes that were closed.
_walked: set[str] = set()
_closed: set[str] = set()


def keyboard_problems(page: Page) -> list[str]:
    """Return elements that the keyboard cannot reach, show or leave, in the current look."""
    # Browsers only show the focus after a key was pressed.
    page.keyboard.press("Tab")
    seen = page.evaluate(_LOOK_AT, list(_frames))
    _frames.add(seen["frame"])
    found = [*seen["problems"], *_walk(page), *_escape(page)]
    page.evaluate("scrollTo(0, 0)")
    return found


def _walk(page: Page) -> list[str]:
    """Press the Tab key from the first element of a page to the last, if there are new kinds."""
    begun = page.evaluate(_WALK, ["begin", list(_walked)])
    if not begun["count"]:
        return []
    _walked.update(begun["sorts"])
    for _ in range(_MOST_ROUNDS):
        for _ in range(begun["count"] + 1):
            page.keyboard.down("Tab")
        page.keyboard.up("Tab")
        if page.evaluate(_WALK, ["is over", []]):
            found: list[str] = page.evaluate(_WALK, ["end", []])
            return found
    return ["keyboard: Tab does not lead out again"]


def _escape(page: Page) -> list[str]:
    """Open and leave boxes that cover other elements, and check that the focus returns."""
    problems = []
    seen: dict[str, int] = {kind: at for at, kind in page.evaluate(_OVERLAYS, list(_closed))}
    for kind, at in seen.items():
        _closed.add(kind)
        page.evaluate(_FOCUS, at)
        for pressed in ("Enter", "Tab", "Escape"):
            page.keyboard.press(pressed)
        if page.evaluate(_CLOSED):
            problems.append(f"keyboard: Escape does not lead out of <details class={kind!r}>")
    page.evaluate("document.activeElement.blur()")
    return problems
