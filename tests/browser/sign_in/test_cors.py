"""Requests of the browser's fetch from another origin: which are allowed, and which are blocked."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.client_site import running_site
from tests.support.accounts.people import alice
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import new_code, new_pair
from tests.support.oauth.openid_wire import openid_application
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
#: Fetches a URL, and returns the data that the script can read.
_FETCH = """async ([url, options]) => {
    try {
        const answer = await fetch(url, options);
        return {status: answer.status, body: await answer.text()};
    } catch (error) {
        return {blocked: error.name};
    }
}"""
BLOCKED = {"blocked": "TypeError"}
#: Requests that no script of another origin may send.
NOT_ALLOWED: dict[str, dict[str, Any]] = {
    "a header": {"method": "POST", "headers": {"X-Requested-With": "XMLHttpRequest"}},
    "a header too many": {
        "method": "POST",
        "headers": {"Authorization": "Bearer x", "X-Requested-With": "x"},
    },
    "put": {"method": "PUT"},
    "delete": {"method": "DELETE"},
    "cookies": {"method": "POST", "credentials": "include"},
}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def elsewhere(browser: Browser) -> Iterator[Page]:
    """A page of another origin in a new browser context."""
    with running_site() as site:
        page = browser.new_page()
        page.goto(site.url)
        yield page
        page.close()


def fetch(page: Page, url: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(_FETCH, [url, options])
    return found


@pytest.mark.long
@pytest.mark.spec("E1", "E3")
@pytest.mark.rfc("rfc7009-2.3-a", "oidc-core-5.3-c")
def test_a_script_signs_its_user_in_and_out(gatebell: LiveGatebell, elsewhere: Page) -> None:
    client = openid_application(gatebell)
    code = new_code(gatebell, client, scope="openid profile")
    form = f"client_id={client.client_id}&client_secret={client.secret}"
    redirect = client.redirect_uri.replace(":", "%3A").replace("/", "%2F")
    body = f"{form}&grant_type=authorization_code&code={code}&redirect_uri={redirect}"
    headers = {"Content-Type": FORM}
    url = gatebell.url

    issued = fetch(elsewhere, f"{url}/oauth/token", method="POST", headers=headers, body=body)
    assert issued["status"] == 200, issued
    token = elsewhere.evaluate("text => JSON.parse(text).access_token", issued["body"])
    # The Authorization header causes a preflight request.
    bearer = {"Authorization": f"Bearer {token}"}
    for method in ("GET", "POST"):
        known = fetch(elsewhere, f"{url}/oauth/userinfo", method=method, headers=bearer)
        assert known["status"] == 200
        assert alice(gatebell).username in known["body"]
    revocation = f"{form}&token={token}"
    gone = fetch(elsewhere, f"{url}/oauth/revoke", method="POST", headers=headers, body=revocation)
    assert gone == {"status": 200, "body": "{}"}
    dead = fetch(elsewhere, f"{url}/oauth/userinfo", headers=bearer)
    assert dead["status"] == 401
    assert "revoked" in dead["body"]


@pytest.mark.spec("E3")
def test_a_script_can_read_errors(gatebell: LiveGatebell, elsewhere: Page) -> None:
    answer = fetch(
        elsewhere,
        f"{gatebell.url}/oauth/token",
        method="POST",
        headers={"Content-Type": FORM, "Authorization": "Basic eDp5"},
        body="grant_type=refresh_token",
    )
    assert answer["status"] == 401
    assert "invalid_client" in answer["body"]


@pytest.mark.long
def test_a_script_can_read_keys_and_descriptions(gatebell: LiveGatebell, elsewhere: Page) -> None:
    for path in (
        "/oauth/discovery/keys",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ):
        assert fetch(elsewhere, gatebell.url + path)["status"] == 200


@pytest.mark.long
@pytest.mark.spec("E2")
def test_the_browser_blocks_everything_else(live_sqlite: LiveGatebell, elsewhere: Page) -> None:
    let_through = {
        (path, name): answer
        for path in ("/oauth/token", "/oauth/revoke", "/oauth/userinfo")
        for name, options in NOT_ALLOWED.items()
        if (answer := fetch(elsewhere, live_sqlite.url + path, **options)) != BLOCKED
    }
    assert let_through == {}


@pytest.mark.long
@pytest.mark.spec("E1")
@pytest.mark.rfc("rfc9700-2.6-b")
def test_a_script_can_read_no_other_responses(live_sqlite: LiveGatebell, elsewhere: Page) -> None:
    token = new_pair(live_sqlite, openid_application(live_sqlite)).access
    shown = {
        (path, *headers): answer
        for path in ("/oauth/authorize", "/oauth/token/info", "/users/sign_in")
        for headers in ({}, {"Authorization": f"Bearer {token}"})
        if (answer := fetch(elsewhere, live_sqlite.url + path, headers=headers)) != BLOCKED
    }
    assert shown == {}


@pytest.mark.long
def test_a_script_uses_the_api_with_a_token_and_never_with_a_cookie(
    gatebell: LiveGatebell, elsewhere: Page
) -> None:
    token = make_token(gatebell, alice(gatebell)).clear
    address = f"{gatebell.url}/api/v4/personal_access_tokens/self"
    headers = {"PRIVATE-TOKEN": token}
    shown = fetch(elsewhere, address, headers=headers)
    assert shown["status"] == 200
    assert fetch(elsewhere, address, credentials="include", headers=headers) == BLOCKED
    assert fetch(elsewhere, address)["status"] == 401
    assert fetch(elsewhere, address, method="DELETE", headers=headers)["status"] == 204
    assert fetch(elsewhere, address, headers=headers)["status"] == 401
