"""What is wrong with a page, in the looks in which people have it before them."""

from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

#: Text that a sender may put anywhere, and that no page may choke on.
NASTY = "\N{RIGHT-TO-LEFT OVERRIDE}<b>bold</b> {{7*7}} " + "very-long-word" * 12
#: Whoever gets along with these two gets along with dark and wide, and with light and narrow.
_LOOKS: tuple[tuple[str, Literal["light", "dark"], int], ...] = (
    ("light and wide", "light", 1280),
    ("dark and narrow", "dark", 360),
)
_AXE = Axe().axe_script
#: Contrast is most of the work of axe, and depends on how a text looks, not on which page it is:
#: what has passed once passes again. Brings the names of the rules, and how the texts look that
#: pass; all that axe has to say is a megabyte.
_LOOK_AT = """async (passed) => {
    const known = new Set(passed);
    const appearance = node => {
        const style = getComputedStyle(node), said = [
            style.color, style.fontSize, style.fontWeight, style.textShadow, style.visibility,
        ];
        for (let part = node; part; part = part.parentElement) {
            const { backgroundColor, backgroundImage, opacity, position } = getComputedStyle(part);
            said.push(backgroundColor, backgroundImage, opacity, position);
        }
        return said.join(" ");
    };
    const isText = node => node.matches("input, select, textarea, button")
        || [...node.childNodes].some(part => part.nodeType === Node.TEXT_NODE && part.data.trim());
    const texts = [...document.body.querySelectorAll("*")].filter(
        node => isText(node) && !known.has(appearance(node)));
    const rules = await axe.run({
        rules: {"color-contrast": {enabled: false}}, resultTypes: ["violations"],
    });
    const contrasts = texts.length ? await axe.run({include: texts}, {
        runOnly: ["color-contrast"], resultTypes: ["violations", "passes"], elementRef: true,
    }) : {violations: [], passes: []};
    return {
        broken: [...rules.violations, ...contrasts.violations].map(
            rule => `axe: ${rule.id}: ${rule.nodes[0].html}`),
        passed: contrasts.passes.flatMap(rule => rule.nodes).map(node => appearance(node.element)),
    };
}"""
_passed: set[str] = set()
_IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def problems_of(page: Page) -> list[str]:
    """Say what is wrong with a page that is open, in each look."""
    heading = page.get_by_role("heading", level=1).inner_text()
    page.evaluate(_AXE)
    problems = []
    # Beginning with the look that the page has: to change it is a good part of the work.
    size = page.viewport_size
    begun = size["width"] if size else 0
    for look, scheme, width in sorted(_LOOKS, key=lambda each: each[2] != begun):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        seen: dict[str, list[str]] = page.evaluate(_LOOK_AT, list(_passed))
        _passed.update(seen["passed"])
        found = seen["broken"]
        found += ["scrolls sideways"] if page.evaluate(_IS_TOO_WIDE) else []
        problems += [f"{heading}, {look}: {problem}" for problem in found]
    return problems


def problems_at(page: Page, address: str, *, status: int = 200) -> list[str]:
    """Open a page and say what is wrong with it."""
    told: list[str] = []

    def hear(error: object) -> None:
        told.append(f"script: {error}")

    page.on("pageerror", hear)
    answer = page.goto(address)
    assert answer is not None
    found = [] if answer.status == status else [f"status {answer.status}"]
    found += problems_of(page)
    page.remove_listener("pageerror", hear)
    return [f"{address}: {problem}" for problem in (*found, *told)]
