"""The alert list in a real browser: keys, bulk actions, updates, and hostile payloads."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.keys import press
from tests.browser.looks import problems_of
from tests.support.accounts.people import alice, make_project, make_user
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

# One database is enough, since tests without a browser check the effects on both.
pytestmark = pytest.mark.one_database("postgres")
#: Text that would run, navigate or mislead, if a page did not escape it.
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<svg onload=\"document.title='owned'\"></svg>'\"`-->]]></textarea></script></title>"
    " javascript:document.title='owned' [x](javascript:document.title='owned')"
    " {{7*7}} \u202egnp.exe\u202c \u2066\u200b\ufeff"
)


@pytest.fixture
def endpoint(gatebell: LiveGatebell, page: Page) -> Endpoint:
    """A project with three alerts, whose owner is signed in."""
    made = connect(gatebell)
    for title in ("first", "second", "third"):
        made.accepted(title=title, fingerprint=title)
    have_signed_in(page, gatebell, alice(gatebell))
    return made


def open_list(page: Page, endpoint: Endpoint) -> None:
    page.goto(f"{endpoint.service}/{endpoint.project}/-/alerts")


def row(page: Page, title: str) -> Locator:
    """Return the row of an alert, whose time may contain the word of the title as well."""
    return page.locator("[data-alert-row]").filter(has=page.get_by_role("link", name=title))


def look_again(page: Page) -> None:
    """Return to the tab, which updates the list immediately."""
    with page.expect_response(lambda answer: "_part=mark" in answer.url):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


@pytest.mark.long
def test_the_list_works_with_the_keyboard(page: Page, endpoint: Endpoint) -> None:
    open_list(page, endpoint)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()

    page.keyboard.press("a")
    expect(page.locator("[data-toast]")).to_contain_text("to go to an alert first")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(row(page, "second").get_by_role("link")).to_be_focused()
    page.keyboard.press("k")
    expect(row(page, "third").get_by_role("link")).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator(".flashes")).to_contain_text("1 alert is now acknowledged.")
    expect(row(page, "third")).to_contain_text("Acknowledged")
    expect(row(page, "third").get_by_role("link")).to_be_focused()

    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-chosen]")).to_have_text("2 selected")
    page.keyboard.press("r")
    expect(page.locator(".flashes")).to_contain_text("2 alerts are now resolved.")
    expect(page.locator("[data-alert-row]")).to_have_count(1)

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("first")


def test_shortcuts_are_off_in_text_fields(page: Page, endpoint: Endpoint) -> None:
    open_list(page, endpoint)
    page.keyboard.press("/")
    search = page.get_by_label("Search titles")
    expect(search).to_be_focused()
    page.keyboard.type("arxijk?/")
    expect(search).to_have_value("arxijk?/")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("[data-chosen]")).to_have_text("Select all")


@pytest.mark.long
def test_several_alerts_are_selected_with_the_mouse(page: Page, endpoint: Endpoint) -> None:
    open_list(page, endpoint)
    acknowledge = page.get_by_role("button", name="Acknowledge")
    expect(acknowledge).to_be_disabled()
    page.get_by_label("Select all").check()
    expect(page.locator("[data-chosen]")).to_have_text("3 selected")
    page.get_by_label("Select alert 2").uncheck()
    acknowledge.click()
    expect(page.locator(".flashes")).to_contain_text("2 alerts are now acknowledged.")
    expect(row(page, "second")).to_contain_text("Triggered")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".flashes")).to_contain_text("2 alerts were restored.")
    expect(row(page, "first")).to_contain_text("Triggered")


@pytest.mark.long
def test_several_alerts_are_selected_with_the_keyboard(page: Page, endpoint: Endpoint) -> None:
    open_list(page, endpoint)
    press(page, page.get_by_label("Select alert 3"), "Space")
    press(page, page.get_by_label("Select alert 1"), "Space")
    expect(page.locator("[data-chosen]")).to_have_text("2 selected")
    press(page, page.get_by_role("button", name="Acknowledge"))
    expect(page.locator(".flashes")).to_contain_text("2 alerts are now acknowledged.")
    expect(row(page, "second")).to_contain_text("Triggered")
    expect(row(page, "first")).to_contain_text("Acknowledged")
    press(page, page.get_by_role("button", name="Undo"))
    expect(page.locator(".flashes")).to_contain_text("2 alerts were restored.")
    expect(row(page, "first")).to_contain_text("Triggered")


@pytest.mark.long
def test_all_matching_alerts_are_changed_after_a_confirmation(
    page: Page, endpoint: Endpoint
) -> None:
    endpoint.post_json([{"title": f"disk {number}"} for number in range(21)])
    page.goto(f"{endpoint.service}/{endpoint.project}/-/alerts?search=disk")
    every = page.get_by_label("All 21 alerts that match")
    expect(every).to_be_hidden()
    page.get_by_label("Select all").check()
    every.check()
    page.get_by_role("button", name="Resolve").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Resolve 21 alerts?")
    assert problems_of(page) == []
    page.get_by_role("link", name="Cancel").click()
    expect(page.locator("#alert-range")).to_contain_text("1\u201320 of 21")
    page.get_by_label("Select all").check()
    page.get_by_label("All 21 alerts that match").check()
    page.get_by_role("button", name="Resolve").click()
    page.get_by_role("button", name="Resolve 21 alerts").click()
    expect(page.locator(".flashes")).to_contain_text("21 alerts are now resolved.")
    page.goto(f"{endpoint.service}/{endpoint.project}/-/alerts")
    expect(page.locator("[data-alert-row]")).to_have_count(3)


@pytest.mark.long
def test_updates_do_not_move_the_focused_row(
    gatebell: LiveGatebell, page: Page, endpoint: Endpoint
) -> None:
    open_list(page, endpoint)
    expect(page).to_have_title(re.compile(r"^\(3\) Open alerts"))
    page.evaluate("window.isTheSamePage = true")
    page.get_by_label("Select alert 1").check()
    row(page, "first").get_by_role("link").focus()

    endpoint.accepted(title="fourth", severity="low")
    endpoint.accepted(title="second", fingerprint="second")
    look_again(page)
    # Counts are updated in place, and new rows wait until the user shows them.
    expect(row(page, "second").locator(".events")).to_have_text("2")
    expect(page).to_have_title(re.compile(r"^\(4\) Open alerts"))
    expect(row(page, "fourth")).to_have_count(0)
    page.get_by_role("button", name="Show 1 new alert").click()
    expect(row(page, "fourth")).to_contain_text("Low")
    expect(page.get_by_label("Select alert 1")).to_be_checked()
    expect(page.get_by_label("Select alert 4")).not_to_be_checked()
    expect(page.locator("[data-news]")).to_have_text("The list was updated.")
    expect(page.locator("#alert-range")).to_contain_text("1\u20134 of 4")

    # If the list has no focus, it shows new rows itself.
    page.get_by_label("Search titles").focus()
    endpoint.accepted(title="fifth")
    look_again(page)
    expect(row(page, "fifth")).to_be_visible()

    # Without changes, the rows are not even replaced.
    page.evaluate("window.before = document.querySelector('[data-alert-row]')")
    look_again(page)
    page.wait_for_timeout(200)
    assert page.evaluate("window.before === document.querySelector('[data-alert-row]')")
    assert page.evaluate("window.isTheSamePage")
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 5


#: Minimum number of alerts on the first screen, by its size.
FIRST_SCREENS = {(1440, 900): 12, (360, 800): 4}
BOXES = "rows => rows.map(row => row.getBoundingClientRect()).map(b => [b.top, b.bottom])"


@pytest.mark.long
def test_the_first_screen_is_full_of_alerts(
    gatebell: LiveGatebell, page: Page, plain_page: Page, endpoint: Endpoint
) -> None:
    have_signed_in(plain_page, gatebell, alice(gatebell))
    for number in range(19):
        title = f"Disk {number} is full: 97 % of 2 TB are taken, and nothing is left for the logs"
        endpoint.accepted(title=title, service="storage", hosts=["db-1.example", "db-2.example"])
    for path in (f"/{endpoint.project}/-/alerts", "/-/alerts"):
        for (width, height), least in FIRST_SCREENS.items():
            for one in (page, plain_page):
                one.set_viewport_size({"width": width, "height": height})
                one.goto(gatebell.url + path)
                boxes = one.locator("[data-alert-row]").evaluate_all(BOXES)
                seen = [top for top, bottom in boxes if top >= 0 and bottom <= height]
                assert len(seen) >= least, (path, width, one is plain_page)
                if width == 1440:
                    assert {round(bottom - top) for top, bottom in boxes} == {44}
    # Devices without a keyboard show no hints for keys.
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_hidden()


@pytest.mark.long
def test_several_alerts_are_changed_without_scripts(
    gatebell: LiveGatebell, plain_page: Page, endpoint: Endpoint
) -> None:
    have_signed_in(plain_page, gatebell, alice(gatebell))
    open_list(plain_page, endpoint)
    time = plain_page.locator("[data-alert-row] .when time").first
    shown = "node => [getComputedStyle(node).fontSize, getComputedStyle(node, '::after').content]"
    assert time.evaluate(shown) == ["14px", "none"]
    plain_page.get_by_label("Show exact times").check()
    assert time.evaluate(shown) == ["0px", f'"{time.get_attribute("title")}"']
    plain_page.get_by_label("Select alert 3").check()
    plain_page.get_by_role("button", name="Ignore").click()
    expect(plain_page.locator(".flashes")).to_contain_text("1 alert is now ignored.")
    assert [alert.status for alert in list_stored_alerts(gatebell, endpoint.project)][
        2
    ] == "ignored"


@pytest.mark.long
@pytest.mark.spec("J5", "I13")
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_hostile_payloads_run_no_scripts_and_create_no_links(
    gatebell: LiveGatebell, page: Page, told: list[str], kind: str
) -> None:
    owner = make_user(gatebell)
    endpoint = connect(gatebell, make_project(gatebell, owner), kind=kind, name=HOSTILE[:100])
    names = (
        *("title", "summary", "alertname", "description", "service", "monitoring_tool", "runbook"),
        *(
            "platform_environment_name",
            "platform_incident_markdown",
            "platform_y_label",
            "instance",
        ),
        *("severity", "start_time", HOSTILE),
    )
    fields = dict.fromkeys(names, HOSTILE) | {"hosts": [HOSTILE]}
    query = "http://a.example/?g0.expr=%3Cscript%3Edocument.title='owned'%3C/script%3E"
    one = item("x", labels=fields, annotations=fields, generatorURL=query, fingerprint=HOSTILE)
    body = webhook(one) if kind == "prometheus" else json.dumps(fields).encode()
    for _ in range(2):
        assert endpoint.post(body, User_Agent="<b>x</b>").status_code == 200

    have_signed_in(page, gatebell, owner)
    project = f"{gatebell.url}/{endpoint.project}"
    page.goto(f"{project}/-/alerts/1")
    page.get_by_text("Add a note", exact=True).click()
    page.get_by_label("Note", exact=True).fill(HOSTILE)
    page.get_by_role("button", name="Add note").click()
    page.goto(f"{project}/-/environments")
    environment = page.locator("th a").first.get_attribute("href")
    for address in (
        *("/-/alerts/1", "/-/alerts", "/-/alerts?status=all&severity=critical&sort=events"),
        *("/-/environments", "/-/settings/integrations", ""),
    ):
        page.goto(project + address)
        check_harmless(page)
    for address in (f"{gatebell.url}{environment}", gatebell.url):
        page.goto(address)
        check_harmless(page)
    assert told == []


def check_harmless(page: Page) -> None:
    assert "owned" not in page.title().replace("document.title='owned'", "")
    addresses = page.eval_on_selector_all(
        "a, form, img, script, link, iframe",
        """nodes => nodes.map(node => {
            const address = node.href || node.action || node.src || '';
            return String(address.baseVal ? new URL(address.baseVal, location) : address);
        })""",
    )
    for address in filter(None, addresses):
        assert address.startswith(("http://", "https://")), address
    assert page.locator("main script, main img, main iframe, main svg[onload]").count() == 0
