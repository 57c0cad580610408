"""First steps with Gatebell as a developer and as a maintainer, also without a mouse or scripts."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in, sign_in
from tests.browser.keys import press
from tests.support.accounts.people import alice, make_application, make_project, make_user
from tests.support.oauth.oauth_wire import authorization_url
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
CALLBACK = "http://127.0.0.1:1/callback"


def redirect_after(page: Page, button: str) -> dict[str, list[str]]:
    """Press a button with the keyboard and return the parameters of the redirect."""
    with page.expect_request(lambda request: request.url.startswith(CALLBACK)) as left:
        press(page, page.get_by_role("button", name=button))
    return parse_qs(urlsplit(left.value.url).query)


@pytest.mark.long
@pytest.mark.spec("A1", "A2", "A9", "B2", "F1", "F2")
def test_a_developer_registers_an_application_approves_it_and_gets_a_token(
    gatebell: LiveGatebell, page: Page
) -> None:
    person = make_user(gatebell)
    sign_in(page, gatebell, person)

    page.get_by_role("link", name="Applications").first.click()
    page.get_by_role("link", name="Register").first.click()
    page.get_by_label("Name", exact=True).fill("Weather station")
    page.get_by_label("Redirect URIs").fill(CALLBACK)
    page.get_by_label("Read your profile").check()
    page.get_by_role("button", name="Register application").click()
    credentials = page.locator("main").inner_text()
    secret = page.locator("#client-secret").text_content() or ""
    client_id = next(word for word in credentials.split() if len(word) == 64)
    assert secret.startswith("gbs-")

    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "scope": "read_user",
        "state": "from the story",
    }
    page.goto(f"{gatebell.url}/oauth/authorize?{urlencode(asked)}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Weather station")
    expect(page.locator("main")).to_contain_text(person.username)
    expect(page.locator("main")).to_contain_text("Read your profile")
    expect(page.locator("main")).to_contain_text("this computer (127.0.0.1:1)")
    answer = redirect_after(page, "Authorize Weather station")

    assert answer["state"] == ["from the story"]
    assert answer["iss"] == [gatebell.url]
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"][0],
        "redirect_uri": CALLBACK,
        "client_id": client_id,
        "client_secret": secret,
    }
    token = requests.post(f"{gatebell.url}/oauth/token", data=form, timeout=10)
    assert token.status_code == 200
    assert token.json()["scope"] == "read_user"


@pytest.mark.spec("A3")
def test_cancel_redirects_with_access_denied(gatebell: LiveGatebell, page: Page) -> None:
    client = make_application(gatebell, alice(gatebell), redirect_uris=(CALLBACK,))
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(authorization_url(gatebell, client))

    answer = redirect_after(page, "Cancel")

    assert answer["error"] == ["access_denied"]
    assert "code" not in answer


@pytest.mark.long
@pytest.mark.spec("H1", "H2", "H5", "H6", "J5")
def test_a_maintainer_connects_a_project_with_the_keyboard(
    gatebell: LiveGatebell, page: Page
) -> None:
    bob = make_user(gatebell, name="bob")
    path = make_project(gatebell, bob)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=gatebell.url)
    have_signed_in(page, gatebell, bob)

    page.goto(f"{gatebell.url}/{path}/-/settings/integrations")
    press(page, page.get_by_role("link", name="Add the first integration"))
    expect(page.get_by_label("Search tools")).to_be_focused()
    press(page, page.get_by_role("link", name="Any tool that posts JSON"))
    expect(page.get_by_label("Message about a problem")).to_be_focused()
    page.keyboard.insert_text(
        '{"title": "Disk full", "severity": "high", "mount": {"free_percent": 2}}'
    )
    press(page, page.get_by_role("button", name="Recognize messages"))
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    press(page, page.get_by_label("Name"), "Control+a")
    page.keyboard.type("Nagios")
    press(page, page.get_by_role("button", name="Add integration"))

    # The credentials are masked until the user reveals them, and copied in clear text.
    key = page.locator("#authorization-key")
    assert (key.text_content() or "").startswith("gbk-")
    expect(key).to_be_hidden()
    press(page, page.get_by_role("button", name="Copy Authorization key"))
    assert page.evaluate("navigator.clipboard.readText()") == key.text_content()
    press(page, page.locator(".secret-box > summary").first)
    expect(key).to_be_visible()

    # The key was seen, so it is reset, after the confirmation was canceled once.
    seen, reset = key.text_content() or "", page.locator("summary").filter(has_text="Reset key")
    press(page, reset)
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(reset).to_be_focused()
    press(page, reset)
    press(page, page.get_by_role("button", name="Reset key"))
    expect(page.locator(".flashes")).to_contain_text("Key reset.")
    expect(key).not_to_have_text(seen)

    press(page, page.get_by_role("link", name="Send test alert").first)
    press(page, page.get_by_role("button", name="Send test alert"))
    expect(page.locator("main")).to_contain_text("Disk full")
    expect(page.locator("main")).to_contain_text("reported as “high”")

    press(page, page.get_by_role("navigation", name="Project").get_by_role("link", name="Alerts"))
    row = page.get_by_role("row").filter(has_text="Disk full")
    expect(row).to_contain_text("High")
    press(page, row.get_by_role("link"))
    expect(page.locator("main")).to_contain_text("mount.free_percent")
    press(page, page.get_by_role("button", name="Acknowledge"))
    expect(page.locator("main")).to_contain_text("Acknowledged")


@pytest.mark.long
def test_a_maintainer_connects_a_project_without_scripts(
    gatebell: LiveGatebell, plain_page: Page
) -> None:
    page, bob = plain_page, make_user(gatebell, name="bob")
    path = make_project(gatebell, bob)
    have_signed_in(page, gatebell, bob)
    page.goto(f"{gatebell.url}/{path}/-/settings/integrations/new")
    page.get_by_label("Name").fill("Nagios")
    page.get_by_role("button", name="Add integration").click()
    page.get_by_text("Reveal").first.click()
    key = page.locator("#authorization-key")
    expect(key).to_be_visible()
    seen = key.text_content() or ""
    page.get_by_text("Reset key").first.click()
    page.get_by_role("button", name="Reset key").click()
    expect(page.locator(".flashes")).to_contain_text("Key reset.")
    expect(key).not_to_have_text(seen)
    page.get_by_role("link", name="Send test alert").first.click()
    page.get_by_role("button", name="Send test alert").click()
    page.get_by_role("navigation", name="Project").get_by_role("link", name="Alerts").click()
    page.get_by_label("Select alert 1").check()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".flashes")).to_contain_text("1 alert is now acknowledged.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".flashes")).to_contain_text("1 alert was restored.")
    page.get_by_role("row").filter(has_text="Disk almost full").get_by_role("link").click()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("main")).to_contain_text("Acknowledged")
