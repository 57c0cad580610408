"""What people do at a page who have no mouse."""

from playwright.sync_api import Locator, Page, expect

#: No page of ours has more to go through before the button that it is about.
_MOST_STEPS = 150
_IS_FOCUSED = "node => node === document.activeElement"


def press(page: Page, target: Locator, key: str = "Enter") -> None:
    """Go to something with the Tab key, and press another key there."""
    expect(target).to_be_visible()
    for _ in range(_MOST_STEPS):
        if target.evaluate(_IS_FOCUSED):
            break
        page.keyboard.press("Tab")
    expect(target).to_be_focused()
    page.keyboard.press(key)
