"""Uses a page with the keyboard."""

from playwright.sync_api import Locator, Page, expect

#: Maximum number of steps to the main button of any page.
_MOST_STEPS = 150
#: Number of steps without a check, since a check after each step takes most of the time.
_STEPS_AT_ONCE = 10
_IS_FOCUSED = "node => node === document.activeElement"
#: Stops the Tab key at an element until `letGo` is called.
_STOP_AT = """node => {
    const stop = event => {
        if (event.key === "Tab" && document.activeElement === node) event.preventDefault();
    };
    addEventListener("keydown", stop, true);
    window.letGo = () => removeEventListener("keydown", stop, true);
}"""


def press(page: Page, target: Locator, key: str = "Enter") -> None:
    """Move the focus to an element with the Tab key, and press another key."""
    expect(target).to_be_visible()
    target.evaluate(_STOP_AT)
    for _ in range(_MOST_STEPS // _STEPS_AT_ONCE):
        if target.evaluate(_IS_FOCUSED):
            break
        for _ in range(_STEPS_AT_ONCE):
            page.keyboard.down("Tab")
        page.keyboard.up("Tab")
    page.evaluate("letGo()")
    expect(target).to_be_focused()
    page.keyboard.press(key)
