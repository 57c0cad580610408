"""Counts clicks from an empty project to the first page that is acknowledged on a phone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.doors import have_signed_in
from tests.support.accounts.people import make_project, make_user
from tests.support.alerts.monitoring import wait_until
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.message_receiver import Receiver, running_receiver

#: Clicks of a user without experience; the goal is to stay below this number.
MOST_CLICKS = 25


class Clicks:
    """A user whose clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def link(self, name: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("link", name=name).first)

    def button(self, name: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("button", name=name).first)

    def fill(self, label: str, value: str) -> None:
        self.page.get_by_label(label, exact=True).fill(value)


@pytest.fixture
def live(new_service: NewService) -> Iterator[LiveGatebell]:
    with running(new_service("sqlite")) as service:
        yield service


@pytest.fixture
def telephone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    yield context.new_page()
    context.close()


def code_in(push: Receiver) -> str:
    """Return the code that was sent to the phone."""
    wait_until(lambda: bool(push.received), "the code comes")
    found = re.search(r"\b\d{6}\b", push.received[-1].body.decode())
    assert found is not None
    return found[0]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_first_page_is_acknowledged_within_twenty_five_clicks(
    live: LiveGatebell, page: Page, telephone: Page
) -> None:
    olga = make_user(live, name="olga")
    path = make_project(live, olga)
    have_signed_in(page, live, olga)
    page.goto(f"{live.url}/{path}")
    maintainer = Clicks(page)
    with running_receiver(Receiver()) as push:
        # She adds her contact.
        maintainer.click(page.locator("header details.menu summary"))
        maintainer.link("Contacts")
        maintainer.link(re.compile("Apprise URL"))
        maintainer.fill("Apprise URL", push.contact_url)
        maintainer.button("Add contact")
        maintainer.fill("Code", code_in(push))
        maintainer.button("Confirm contact")
        # She sets up who is on call and when they are paged.
        maintainer.link("Projects")
        maintainer.link(path)
        maintainer.link("On-call")
        maintainer.link("Create the first schedule")
        maintainer.fill("Name", "Primary")
        maintainer.button("Create schedule")
        maintainer.button("Add rotation")
        maintainer.link("New escalation policy")
        maintainer.button("Create policy")
        # She connects a monitoring system.
        maintainer.link("Integrations")
        maintainer.link("Add the first integration")
        maintainer.link(re.compile("Any tool that posts JSON"))
        maintainer.button("Add integration")
        maintainer.link("Send test alert")
        before = len(push.received)
        maintainer.button("Send test alert")
        # Her phone shows the page, and she acknowledges it.
        wait_until(lambda: len(push.received) > before, "the page comes")
        link = re.search(rf"{live.url}/-/acknowledge/[\w.-]+", push.received[-1].body.decode())
        assert link is not None
        telephone.goto(link[0])
        telephone.get_by_role("button", name="Acknowledge").tap()
        maintainer.clicks += 2
        expect(telephone.get_by_text(f"acknowledged as @{olga.username}")).to_be_visible()
    assert maintainer.clicks <= MOST_CLICKS
