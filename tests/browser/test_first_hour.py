"""The first hour with Gatebell, in a real browser: a developer's, and a maintainer's."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in, sign_in
from tests.support.accounts.people import alice, make_application, make_project, make_user
from tests.support.oauth.oauth_wire import authorization_url
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
CALLBACK = "http://127.0.0.1:1/callback"


def redirect_after(page: Page, button: str) -> dict[str, list[str]]:
    """Press a button and return the parameters with which the browser leaves."""
    with page.expect_request(lambda request: request.url.startswith(CALLBACK)) as left:
        page.get_by_role("button", name=button).click()
    return parse_qs(urlsplit(left.value.url).query)


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
def test_who_presses_cancel_goes_back_with_access_denied(
    gatebell: LiveGatebell, page: Page
) -> None:
    client = make_application(gatebell, alice(gatebell), redirect_uris=(CALLBACK,))
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(authorization_url(gatebell, client))

    answer = redirect_after(page, "Cancel")

    assert answer["error"] == ["access_denied"]
    assert "code" not in answer


@pytest.mark.spec("H1", "H2", "H5", "H6", "J5")
def test_a_maintainer_connects_a_project_sends_a_test_alert_and_sees_it(
    gatebell: LiveGatebell, page: Page
) -> None:
    bob = make_user(gatebell, name="bob")
    path = make_project(gatebell, bob)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=gatebell.url)
    have_signed_in(page, gatebell, bob)

    page.goto(f"{gatebell.url}/{path}/-/settings/integrations")
    page.get_by_role("link", name="Add the first integration").click()
    page.get_by_label("Name").fill("Nagios")
    page.get_by_role("button", name="Add integration").click()

    # The credentials: masked until they are wanted, and copied in the clear.
    key = page.locator("#authorization-key")
    assert (key.text_content() or "").startswith("gbk-")
    expect(key).to_be_hidden()
    page.get_by_role("button", name="Copy Authorization key").click()
    assert page.evaluate("navigator.clipboard.readText()") == key.text_content()
    page.get_by_text("Reveal").first.click()
    expect(key).to_be_visible()

    page.get_by_role("link", name="Send test alert").click()
    page.get_by_role("button", name="Send test alert").click()
    expect(page.locator("main")).to_contain_text("Disk almost full on web-1")
    expect(page.locator("main")).to_contain_text("severity is “high”")

    page.get_by_role("navigation", name="Project").get_by_role("link", name="Alerts").click()
    row = page.get_by_role("row").filter(has_text="Disk almost full on web-1")
    expect(row).to_contain_text("High")
    row.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("mount.free_percent")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("main")).to_contain_text("Acknowledged")
