"""Mapping by pointing at the values of a sample: mouse, keyboard, touch, and without scripts."""

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.browser.looks.keyboard import keyboard_problems
from tests.support.accounts.people import alice
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import (
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

SAMPLE: dict[str, Any] = {
    "what": "Disk full",
    "box": "db-1",
    "stage": "broken",
    "parts": ["a", "b"],
    "inner": json.dumps({"unit": "disk", "list": "a, b"}),
}
RESOLVED = "Resolves the alert when it is this value"
IGNORED = "Ignore messages with this value"

#: Whether the open menu covers its value.
_OVERLAP = """() => {
    const [menu, value] = [".pointing-menu", "[aria-expanded=true].json-value"].map(
        (each) => document.querySelector(each).getBoundingClientRect());
    return menu.top < value.bottom && value.top < menu.bottom;
}"""


def open_editor(page: Page, gatebell: LiveGatebell, endpoint: Endpoint, query: str = "") -> None:
    have_signed_in(page, gatebell, alice(gatebell))
    base = f"{gatebell.url}/{endpoint.project}/-/settings/integrations/{endpoint.id}"
    page.goto(f"{base}/configure{query}")


def parse_sample(
    page: Page, gatebell: LiveGatebell, endpoint: Endpoint, sample: Any = SAMPLE
) -> None:
    """Open the editor with a sample and without a mapping."""
    endpoint.post_json(sample)
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    open_editor(page, gatebell, endpoint, f"?sample={delivery.id}")
    page.evaluate(
        """() => {
            for (const select of document.querySelectorAll("[data-mapping-table] select"))
                select.selectedIndex = 0;
            for (const words of document.querySelectorAll("[name$=_words]")) words.value = "";
            document.querySelector("[data-mapping-table] select")
                .dispatchEvent(new Event("change", {bubbles: true}));
        }"""
    )


def value(page: Page, path: str) -> Locator:
    """Return the button of a value in the sample."""
    return page.locator(f".json-value[data-label='{path}']")


def item(page: Page, words: str) -> Locator:
    """Return an item of the open menu."""
    return page.get_by_role("menuitemcheckbox", name=words, exact=True)


def saved_mapping(gatebell: LiveGatebell, endpoint: Endpoint) -> Any:
    return list_stored_integrations(gatebell, endpoint.project)[0].mapping


@pytest.mark.spec("H8")
def test_values_are_mapped_with_the_mouse(
    gatebell: LiveGatebell, page: Page, told: list[str]
) -> None:
    endpoint = connect(gatebell)
    parse_sample(page, gatebell, endpoint)
    preview = page.get_by_role("complementary")
    expect(preview).to_contain_text("New: Alert")
    value(page, "what").click()
    item(page, "Title").click()
    expect(preview).to_contain_text("Disk full")
    expect(value(page, "what")).to_be_focused()
    expect(value(page, "what")).to_have_accessible_name('what: "Disk full" Title')
    for path, words in (
        ("box", "Hosts"),
        ("box", "Fingerprint"),
        ("inner.unit", "Add to fingerprint"),
        ("parts", "Description"),
        ("stage", RESOLVED),
        ("stage", IGNORED),
    ):
        value(page, path).click()
        item(page, words).click()
    expect(value(page, "stage")).to_contain_text("Resolved when is broken Ignored when is broken")
    value(page, "stage").click()
    expect(item(page, RESOLVED)).to_have_attribute("aria-checked", "true")
    item(page, IGNORED).click()
    expect(value(page, "stage")).not_to_contain_text("Ignored")
    expect(preview).to_contain_text("Resolved")
    # The drop-downs show the same, and changes there are marked at the values.
    page.get_by_text("All fields and rules").click()
    expect(page.get_by_label("Hosts: source field")).to_have_value('["box"]')
    page.get_by_label("Service: fallback").select_option('["box"]')
    expect(value(page, "box")).to_contain_text("Service (fallback) Hosts Fingerprint")
    page.get_by_label("Service: fallback").select_option("")
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    assert saved_mapping(gatebell, endpoint) == {
        "title": [["what"]],
        "description": [["parts"]],
        "hosts": [["box"]],
        "fingerprint": [["box"]],
        "rules": {
            "resolved_when": [{"path": ["stage"], "operator": "is", "words": ["broken"]}],
            "joins": {"fingerprint": {"paths": [["inner", "unit"]], "separator": ": "}},
        },
    }
    expect(value(page, "inner.unit")).to_contain_text("Fingerprint (joined)")
    value(page, "what").click()
    item(page, "Title").click()
    expect(page.get_by_role("complementary")).to_contain_text("New: Alert")
    assert told == []


def test_the_menu_offers_what_a_value_can_be(gatebell: LiveGatebell, page: Page) -> None:
    parse_sample(page, gatebell, connect(gatebell))
    value(page, "what").click()
    expect(item(page, "Add to fingerprint")).to_be_hidden()
    expect(item(page, RESOLVED)).to_be_visible()
    # A second click closes the menu, and a click on another value opens its menu.
    value(page, "what").click()
    expect(page.get_by_role("menu")).to_be_hidden()
    for path in ("parts", "inner.list"):
        value(page, path).click()
        expect(item(page, "Title")).to_be_visible()
        expect(item(page, RESOLVED)).to_be_hidden()
    page.keyboard.press("Escape")
    page.get_by_label("Sample payload (JSON)").fill("{}")
    expect(value(page, "what")).to_be_disabled()


def test_rules_and_joined_values_get_further_controls(gatebell: LiveGatebell, page: Page) -> None:
    endpoint = connect(gatebell)
    sample = {"name": "Disk", "words": [f"w{number}" for number in range(9)]}
    parse_sample(page, gatebell, endpoint, sample)
    value(page, "name").click()
    item(page, "Fingerprint").click()
    for number in range(9):
        value(page, f"words[{number}]").click()
        item(page, IGNORED).click()
        value(page, f"words[{number}]").click()
        item(page, "Add to fingerprint").click()
    for number, uses in ((5, "Fingerprint (joined)"), (7, "Ignored when"), (8, "w8")):
        expect(value(page, f"words[{number}]")).to_contain_text(uses)
    expect(value(page, "words[6]")).not_to_contain_text("joined")
    expect(value(page, "words[8]")).not_to_contain_text("Ignored")
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    rules = saved_mapping(gatebell, endpoint)["rules"]
    assert [rule["words"] for rule in rules["dropped_when"]] == [[f"w{n}"] for n in range(8)]
    assert len(rules["joins"]["fingerprint"]["paths"]) == 6


def test_values_are_mapped_with_the_keyboard(gatebell: LiveGatebell, page: Page) -> None:
    endpoint = connect(gatebell)
    parse_sample(page, gatebell, endpoint)
    page.get_by_role("region", name="Sample as JSON").focus()
    page.keyboard.press("Tab")
    expect(value(page, "what")).to_be_focused()
    page.keyboard.press("Enter")
    expect(item(page, "Title")).to_be_focused()
    expect(value(page, "what")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(item(page, "Severity")).to_be_focused()
    for key, words in (("End", IGNORED), ("ArrowDown", "Title"), ("ArrowUp", IGNORED)):
        page.keyboard.press(key)
        expect(item(page, words)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_be_hidden()
    expect(value(page, "what")).to_be_focused()
    expect(value(page, "what")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Space")
    expect(item(page, "Title")).to_be_focused()
    page.keyboard.press("Enter")
    expect(value(page, "what")).to_be_focused()
    expect(page.get_by_role("complementary")).to_contain_text("Disk full")
    page.keyboard.press("Tab")
    expect(value(page, "box")).to_be_focused()
    page.keyboard.press("Enter")
    expect(item(page, "Title")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("menu")).to_be_hidden()
    expect(value(page, "stage")).to_be_focused()


def test_values_are_mapped_by_touch_on_a_phone(gatebell: LiveGatebell, browser: Browser) -> None:
    endpoint = connect(gatebell)
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True) as context:
        page = context.new_page()
        parse_sample(page, gatebell, endpoint)
        value(page, "what").tap()
        menu, chosen = page.get_by_role("menu"), value(page, "what")
        expect(menu).to_be_in_viewport(ratio=1)
        expect(chosen).to_be_in_viewport(ratio=1)
        assert not page.evaluate(_OVERLAP)
        for each in page.get_by_role("menuitemcheckbox").all():
            box = each.bounding_box()
            assert box is not None
            assert box["height"] >= 40
        item(page, "Title").tap()
        expect(menu).to_be_hidden()
        expect(page.get_by_role("complementary")).to_contain_text("Disk full")
        value(page, "box").tap()
        page.touchscreen.tap(5, 5)
        expect(menu).to_be_hidden()
        page.get_by_role("button", name="Save mapping").tap()
        expect(page.get_by_text("Mapping saved.")).to_be_visible()
    assert saved_mapping(gatebell, endpoint) == {"title": [["what"]]}


def test_the_editor_and_its_menu_look_right(
    gatebell: LiveGatebell, page: Page, told: list[str]
) -> None:
    parse_sample(page, gatebell, connect(gatebell))
    assert problems_of(page, keyboard_problems) == []
    value(page, "stage").click()
    item(page, RESOLVED).click()
    value(page, "stage").click()
    assert problems_of(page) == []
    assert told == []


def test_a_value_of_the_recovery_becomes_a_rule(
    gatebell: LiveGatebell, page: Page, told: list[str]
) -> None:
    endpoint = connect(gatebell)
    parse_sample(page, gatebell, endpoint)
    value(page, "box").click()
    item(page, "Fingerprint").click()
    page.get_by_text("Recovery and repeat").click()
    recovery = {"what": "Disk full", "box": "db-1", "outcome": "calm"}
    page.get_by_label("Message about the recovery").fill(json.dumps(recovery))
    page.get_by_role("button", name="Parse sample again").click()
    part = page.get_by_role("region", name="Recovery as JSON")
    part.locator(".json-value[data-label=outcome]").click()
    item(page, RESOLVED).click()
    expect(part.locator(".json-value[data-label=outcome]")).to_contain_text("Resolved when")
    expect(page.get_by_role("complementary")).to_contain_text("The recovery resolves the alert.")
    assert problems_of(page) == []
    assert told == []
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    rules = saved_mapping(gatebell, endpoint)["rules"]["resolved_when"]
    assert [rule["path"] for rule in rules if rule["words"] == ["calm"]] == [["outcome"]]


def test_messages_of_the_log_are_used_without_a_script(
    gatebell: LiveGatebell, plain_page: Page
) -> None:
    page, endpoint = plain_page, connect(gatebell)
    firing = {"check": "disk", "host": "db-1", "state": "failing", "at": "2026-11-29T08:00:00Z"}
    endpoint.post_json(firing)
    endpoint.post_json({**firing, "state": "passing", "at": "2026-11-29T08:10:00Z"})
    open_editor(page, gatebell, endpoint)
    page.get_by_role("link", name="Use as sample").click()
    page.get_by_role("button", name="Use as recovery").click()
    expect(page.get_by_role("complementary")).to_contain_text("The recovery resolves the alert.")
    expect(page.get_by_text("Choose a value to use it")).to_be_hidden()
    expect(page.get_by_label("Hosts: source field")).to_have_value('["host"]')
    page.get_by_role("button", name="Save mapping").click()
    expect(page.get_by_text("Mapping saved.")).to_be_visible()
    endpoint.post_json(firing)
    endpoint.post_json({**firing, "state": "passing"})
    assert list_stored_alerts(gatebell, endpoint.project)[-1].status == "resolved"
