"""Passkey requests that the scripts of pages send to the service."""

from typing import Any

import requests

from models import Passkey
from tests.support.accounts.people import Person, database_of, open_browser
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.authenticators import Authenticator
from tests.support.sign_in.second_factors import SECURITY, TWO_FACTOR, give_password
from tests.support.wire.html_forms import HtmlForm, form_with, submit

PASSKEYS = f"{SECURITY}/passkeys"
SIGN_IN = "/users/sign_in"


def authenticator_for(gatebell: LiveGatebell, **about: Any) -> Authenticator:
    return Authenticator(origin=gatebell.url, **about)


def csrf_of(page: requests.Response) -> str:
    return form_with(page, "csrf_token").value("csrf_token")


def request_passkey_options(
    browser: requests.Session, page: requests.Response, path: str, **more: str
) -> dict[str, Any]:
    """Request the options for the authenticator, as the script of the page does."""
    origin = "/".join(page.url.split("/")[:3])
    answer = browser.post(f"{origin}{path}", {"csrf_token": csrf_of(page), **more})
    assert answer.status_code == 200, answer.text
    asked: dict[str, Any] = answer.json()
    return asked


def send(
    browser: requests.Session, page: requests.Response, path: str, credential: str, **more: str
) -> requests.Response:
    """Send the response of the authenticator, as the script of the page does."""
    form = HtmlForm(action=path, method="post", fields=[("csrf_token", csrf_of(page))])
    return submit(browser, page, form, credential=credential, **more)


def add(
    gatebell: LiveGatebell, browser: requests.Session, person: Person, key: Authenticator, name: str
) -> requests.Response:
    page = browser.get(f"{gatebell.url}{PASSKEYS}/new")
    words = {"name": name, "current_password": person.password}
    asked = request_passkey_options(browser, page, f"{PASSKEYS}/new.json", **words)
    return send(browser, page, f"{PASSKEYS}/new", key.make(asked), name=name)


def give_passkey(gatebell: LiveGatebell, person: Person, **about: Any) -> Authenticator:
    """Let the user add a passkey to an account without a second factor."""
    key = authenticator_for(gatebell, **about)
    answer = add(gatebell, open_browser(gatebell, person), person, key, "Blue key")
    assert answer.headers["Location"] == f"{SECURITY}/recovery_codes", answer.text
    return key


def after_password(
    gatebell: LiveGatebell, person: Person
) -> tuple[requests.Session, requests.Response, dict[str, Any]]:
    """Submit the password, and request the options for the second step."""
    browser, page = give_password(gatebell, person)
    return browser, page, request_passkey_options(browser, page, f"{TWO_FACTOR}/passkey.json")


def request_sign_in_options(
    gatebell: LiveGatebell, **query: str
) -> tuple[requests.Session, requests.Response, dict[str, Any]]:
    """Open the sign-in page and request the options for any passkey."""
    browser = gatebell.http()
    page = browser.get(gatebell.url + SIGN_IN, params=query)
    return browser, page, request_passkey_options(browser, page, f"{SIGN_IN}/passkey.json")


def rows(gatebell: LiveGatebell) -> list[tuple[bytes, int, str]]:
    with database_of(gatebell) as session:
        kept = session.query(Passkey).all()
        return [(bytes(each.credential_id), each.sign_count, each.transports) for each in kept]
