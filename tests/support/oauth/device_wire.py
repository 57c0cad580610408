"""Device authorization step by step: requests of the device, and its page."""

from functools import cache
from typing import Any

import requests

from tests.support.accounts.people import ClientCredentials, bob, make_application
from tests.support.oauth.oauth_wire import Changes, changed, machine, post_token
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@cache
def television(gatebell: LiveGatebell) -> ClientCredentials:
    """Return a public application for devices; tests do not change it."""
    return make_application(gatebell, bob(gatebell), name="Telly & Co", confidential=False)


def request_device_codes(
    gatebell: LiveGatebell, client: ClientCredentials, /, **changes: Changes
) -> requests.Response:
    """Request codes as a device does, without a secret unless one is given."""
    parameters = {"client_id": client.client_id, "scope": "read_user"}
    address = f"{gatebell.url}/oauth/authorize_device"
    return machine(gatebell).post(address, data=changed(parameters, changes))


def codes(
    gatebell: LiveGatebell, client: ClientCredentials, /, **changes: Changes
) -> dict[str, Any]:
    """Return the response that a device gets."""
    answer = request_device_codes(gatebell, client, **changes)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def poll_form(client: ClientCredentials, device_code: str) -> dict[str, str]:
    return {
        "grant_type": DEVICE_GRANT,
        "client_id": client.client_id,
        "device_code": device_code,
    }


def poll(
    gatebell: LiveGatebell, client: ClientCredentials, device_code: str, /, **changes: Changes
) -> requests.Response:
    """Poll for the decision of the user."""
    return post_token(gatebell, changed(poll_form(client, device_code), changes))


def enter_code(browser: requests.Session, gatebell: LiveGatebell, typed: str) -> requests.Response:
    """Type a code into the page."""
    page = browser.get(f"{gatebell.url}/oauth/device")
    return submit(browser, page, form_with(page, "user_code"), user_code=typed)


def press_decision(
    browser: requests.Session, page: requests.Response, decision: str | None
) -> requests.Response:
    """Press a button below the request."""
    return submit(browser, page, form_with(page, "decision"), decision=decision)


def approve(browser: requests.Session, gatebell: LiveGatebell, user_code: str) -> None:
    """Enter a code and approve the request."""
    done = press_decision(browser, enter_code(browser, gatebell, user_code), "approve")
    assert done.status_code == 200, done.text
    assert "Device connected" in done.text


def is_asking(page: requests.Response) -> bool:
    """Return whether a page shows a request to approve or deny."""
    return page.status_code == 200 and 'name="decision"' in page.text
