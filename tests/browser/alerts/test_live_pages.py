"""Pages refresh themselves without a reload, and do not disturb the user."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from domain.access.roles import Role
from tests.browser.doors import have_signed_in
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, make_project, make_user, now
from tests.support.accounts.team import give_role, take_role
from tests.support.alerts.heartbeats import heartbeat
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


class Shop:
    """A project with an alert and an incident, whose owner is signed in."""

    def __init__(self, gatebell: LiveGatebell, page: Page) -> None:
        self.gatebell, self.page = gatebell, page
        self.owner: Person = make_user(gatebell)
        self.project = make_project(gatebell, self.owner)
        self.endpoint: Endpoint = connect(gatebell, self.project)
        self.endpoint.accepted(title="Disk full")
        at = f"/projects/{quote(self.project, safe='')}"
        self.api: ApiCaller = api_caller(gatebell, self.owner, at)
        have_signed_in(page, gatebell, self.owner)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.gatebell.url}{path}")

    def look_again(self) -> None:
        """Return to the tab, which updates the page immediately."""
        with self.page.expect_response(lambda answer: "_part=mark" in answer.url):
            self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    def alert(self, method: str, path: str, *, status: int = 200, **sent: Any) -> Any:
        at = f"/alert_management_alerts/{path}"
        return self.api.done(method, at, status=status, json=sent)

    def acknowledge(self) -> None:
        self.api.done("PUT", "/alert_management_alerts/1", json={"status": "acknowledged"})


@pytest.fixture
def shop(gatebell: LiveGatebell, page: Page) -> Shop:
    return Shop(gatebell, page)


def follow(shop: Shop, path: str, act: Callable[[], object], words: str) -> None:
    """Open a page, and assert that it shows the result of an action without a reload."""
    shop.open(path)
    shop.page.evaluate("window.isSamePage = true")
    expect(shop.page.locator("main")).not_to_contain_text(words)
    act()
    shop.look_again()
    expect(shop.page.locator("main")).to_contain_text(words)
    assert shop.page.evaluate("window.isSamePage") is True
    expect(shop.page.locator("[data-live-news]")).to_contain_text("This page was updated")


def test_an_alert_follows_its_changes(shop: Shop) -> None:
    path = f"/{shop.project}/-/alerts/1"
    follow(shop, path, shop.acknowledge, "Acknowledged")
    expect(shop.page.locator("#actions")).to_contain_text("Resolve")
    assert shop.page.title().startswith("(1) #1 Disk full")
    shop.endpoint.accepted(title="Checkout is down")
    shop.look_again()
    expect(shop.page).to_have_title(f"(2) #1 Disk full · {shop.project} · Gatebell")


@pytest.mark.long
def test_a_key_right_after_an_update_presses_no_new_button(shop: Shop) -> None:
    shop.open(f"/{shop.project}/-/alerts/1")
    shop.acknowledge()
    shop.look_again()
    given = shop.page.locator("#actions .given")
    expect(given).to_contain_text("Acknowledged")
    shop.page.keyboard.press("o")
    shop.page.wait_for_timeout(2600)
    expect(given).to_contain_text("Acknowledged")
    shop.page.keyboard.press("o")
    expect(given).to_be_hidden()


@pytest.mark.long
def test_an_incident_follows_its_comments(shop: Shop) -> None:
    shop.api.done("POST", "/incidents", status=201, json={"alerts": [1]})
    comment = {"body": "The database is slow."}
    follow(
        shop,
        f"/{shop.project}/-/incidents/1",
        lambda: shop.api.done("POST", "/incidents/1/notes", status=201, json=comment),
        "The database is slow.",
    )


@pytest.mark.long
def test_home_and_the_project_follow_new_alerts(shop: Shop) -> None:
    for number, path in enumerate(("/", f"/{shop.project}")):
        title = f"Alert number {number}"
        follow(shop, path, partial(shop.endpoint.accepted, title=title), title)
        assert shop.page.title().startswith(f"({number + 2}) ")


@pytest.mark.long
def test_schedules_deliveries_and_heartbeats_are_followed(shop: Shop) -> None:
    made = shop.api.done(
        "POST", "/on_call/schedules", status=201, json={"name": "Primary", "time_zone": "UTC"}
    )
    zelda = make_user(shop.gatebell, name="zelda")
    give_role(shop.gatebell, shop.project, zelda, Role.DEVELOPER)
    for hours, path in ((1, "on_call"), (2, f"on_call/schedules/{made['id']}")):
        person = zelda if hours == 1 else shop.owner
        shift = {
            "user": person.username,
            "starts_at": (now() - timedelta(hours=hours)).isoformat(),
            "ends_at": (now() + timedelta(hours=hours)).isoformat(),
        }
        at = f"/on_call/schedules/{made['id']}/overrides"
        shop.open(f"/{shop.project}/-/{path}")
        shop.api.done("POST", at, status=201, json=shift)
        shop.look_again()
        expect(shop.page.locator("main")).to_contain_text(person.username)

    job = heartbeat(shop.gatebell, project=shop.project)
    follow(shop, f"/{shop.project}/-/heartbeats", job.ping, "Up")
    log = f"/{shop.project}/-/settings/integrations/{shop.endpoint.id}/deliveries"
    follow(shop, log, lambda: shop.endpoint.post(b"no JSON"), "400")


def test_what_the_user_is_doing_stays(shop: Shop) -> None:
    page = shop.page
    page.set_viewport_size({"width": 1280, "height": 500})
    shop.open(f"/{shop.project}/-/alerts/1")
    box = page.locator("details.why").filter(has_text="Why were these grouped?")
    box.locator("summary").click()
    page.get_by_text("Add a note", exact=True).click()
    note = page.get_by_label("Note", exact=True)
    note.fill("I am just")
    page.evaluate("scrollTo(0, 200)")
    shop.alert("POST", "1/notes", status=201, body="Somebody else was faster.")
    shop.look_again()
    expect(page.locator("main")).to_contain_text("Somebody else was faster.")
    expect(note).to_have_value("I am just")
    expect(note).to_be_focused()
    expect(box).to_have_attribute("open", "")
    assert page.evaluate("scrollY") == 200

    # The button under the focus stays until the focus leaves it.
    actions = page.locator("#actions")
    actions.get_by_role("button", name="Acknowledge").focus()
    shop.acknowledge()
    shop.look_again()
    expect(page.locator(".state-line")).to_contain_text("Acknowledged")
    expect(actions.get_by_role("button", name="Acknowledge")).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    expect(actions.get_by_role("button", name="Acknowledge")).to_have_count(0)
    expect(note).to_have_value("I am just")


@pytest.mark.long
def test_a_page_is_loaded_again_when_a_time_on_it_has_passed(shop: Shop) -> None:
    shop.open(f"/{shop.project}/-/alerts/1")
    with shop.page.expect_response(
        lambda answer: answer.url.endswith("/-/alerts/1") and answer.ok, timeout=20_000
    ):
        shop.page.evaluate(
            """() => {
              const time = document.createElement("time");
              time.dateTime = new Date(Date.now() + 3000).toISOString();
              document.querySelector("main").append(time);
              document.dispatchEvent(new Event("visibilitychange"));
            }"""
        )
    expect(shop.page.locator("main > time")).to_have_count(0)


@pytest.mark.long
def test_a_page_that_is_gone_says_so(shop: Shop) -> None:
    zelda = make_user(shop.gatebell, name="zelda")
    give_role(shop.gatebell, shop.project, zelda, Role.DEVELOPER)
    have_signed_in(shop.page, shop.gatebell, zelda)
    shop.open(f"/{shop.project}/-/alerts/1")
    take_role(shop.gatebell, shop.project, zelda)
    shop.look_again()
    notice = shop.page.locator("main > .flashes[data-live]")
    expect(notice).to_contain_text("This page is no longer available. Reload")
    shop.page.context.clear_cookies()
    have_signed_in(shop.page, shop.gatebell, shop.owner)
    shop.open(f"/{shop.project}/-/alerts/1")
    shop.page.context.clear_cookies()
    shop.look_again()
    expect(notice).to_contain_text("You were signed out. Reload")


@pytest.mark.long
def test_without_scripts_the_page_is_as_before(shop: Shop, plain_page: Page) -> None:
    have_signed_in(plain_page, shop.gatebell, shop.owner)
    plain_page.goto(f"{shop.gatebell.url}/{shop.project}/-/alerts/1")
    expect(plain_page.get_by_role("heading", level=1)).to_contain_text("Disk full")
    expect(plain_page.locator("[data-live-news]")).to_have_count(0)
    plain_page.locator("#actions").get_by_role("button", name="Acknowledge").click()
    expect(plain_page.locator(".state-line")).to_contain_text("Acknowledged")
