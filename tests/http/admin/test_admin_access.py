"""Tests that `/admin` is available only to administrators, and not found for other users."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import requests

from tests.support.accounts.administration import find_user_id, get_administrator_browser
from tests.support.accounts.people import alice, bob, make_application, signed_in, unique
from tests.support.service.live import LiveGatebell
from tests.support.wire.addresses import listed_addresses
from tests.support.wire.html_forms import forms_in

pytestmark = pytest.mark.one_database("sqlite")

#: Addresses with query parameters, which are not in the list of routes.
SEARCHES = (
    "/admin/users?group=administrators&search=root",
    "/admin/users?group=locked",
    "/admin/users?group=bots",
    "/admin/applications?of=users",
)


def provider_at(gatebell: LiveGatebell) -> dict[str, Any]:
    """Create an unreachable identity provider, and return it."""
    client = ("--client-id", "x", "--client-secret", "x", "--issuer", "http://127.0.0.1:1")
    slug = unique("idp")
    return gatebell.cli("identity-providers", "create", "--slug", slug, "--title", slug, *client)


@cache
def admin_addresses(gatebell: LiveGatebell, method: str) -> tuple[str, ...]:
    """Return all addresses below `/admin` that accept a method, with ids of existing records."""
    there = {
        "user_id": find_user_id(gatebell, alice(gatebell)),
        "application_id": make_application(gatebell, bob(gatebell)).id,
        "secret_id": 1,
        "section": "feature-flags",
        "name": "tier",
        "provider": "idp",
        "extension": "csv",
        "kind": "email",
        "destination_id": "nowhere.example",
        "message_id": 1,
        "role_id": 1,
        "provider_id": provider_at(gatebell)["id"],
        "stream_id": gatebell.cli("audit-streams", "create", "--url", "http://127.0.0.1:1")["id"],
    }
    found = [
        re.sub(r"<(?:[^>:]+:)?(\w+)>", lambda part: str(there[part[1]]), each.rule)
        for each in listed_addresses()
        if each.method == method and each.rule.startswith("/admin")
    ]
    return (*found, *(SEARCHES if method == "GET" else ()))


def wrong_answers(
    expected: object, ask: Callable[[str], object], addresses: tuple[str, ...]
) -> dict[str, object]:
    """Return the answers that differ from the expected answer, by address."""
    assert len(addresses) > 10
    told = {address: ask(address) for address in addresses}
    return {address: answer for address, answer in told.items() if answer != expected}


def csrf_token(gatebell: LiveGatebell, browser: requests.Session) -> str:
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    return next(form.value("csrf_token") for form in forms_in(page.text) if form.has("csrf_token"))


def test_all_pages_below_admin_need_an_administrator() -> None:
    below = {each.mark for each in listed_addresses() if each.rule.startswith("/admin")}
    assert below == {
        "an administrator, freshly signed in",
        "an administrator, for changes freshly signed in",
    }


@pytest.mark.long
def test_an_administrator_can_open_every_page(gatebell: LiveGatebell) -> None:
    def ask(path: str) -> object:
        page = get_administrator_browser(gatebell).get(gatebell.url + path)
        return page.status_code, "Administration" in page.text

    # These addresses return a file, or a part of a page.
    others = ("/export.", "/setup")
    pages = [
        each
        for each in admin_addresses(gatebell, "GET")
        if not any(other in each for other in others)
    ]
    assert wrong_answers((200, True), ask, tuple(pages)) == {}


@pytest.mark.long
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_visitors_are_redirected_to_the_sign_in_page(gatebell: LiveGatebell, method: str) -> None:
    browser = gatebell.http()
    sent = {"csrf_token": csrf_token(gatebell, browser)}

    def ask(path: str) -> object:
        answer = browser.request(method, gatebell.url + path, data=sent, allow_redirects=False)
        return answer.status_code, answer.headers.get("Location", "").partition("?")[0]

    addresses = admin_addresses(gatebell, method)
    assert wrong_answers((302, "/users/sign_in"), ask, addresses) == {}


def test_admin_pages_are_not_found_for_other_users(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))

    def ask(path: str) -> object:
        page = browser.get(gatebell.url + path)
        return page.status_code, "Administration" in page.text

    assert wrong_answers((404, False), ask, admin_addresses(gatebell, "GET")) == {}


@pytest.mark.long
def test_admin_forms_are_not_found_for_other_users(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    sent = {"csrf_token": csrf_token(gatebell, browser)}

    def ask(path: str) -> object:
        return browser.post(gatebell.url + path, data=sent, allow_redirects=False).status_code

    assert wrong_answers(404, ask, admin_addresses(gatebell, "POST")) == {}


@pytest.mark.long
def test_admin_forms_need_the_form_token(gatebell: LiveGatebell) -> None:
    def ask(path: str) -> object:
        return (
            get_administrator_browser(gatebell)
            .post(gatebell.url + path, allow_redirects=False)
            .status_code
        )

    assert wrong_answers(400, ask, admin_addresses(gatebell, "POST")) == {}


NOT_FOUND = (
    "/admin/users/999999999",
    "/admin/users/99999999999999999999999",
    "/admin/users/0",
    "/admin/applications/999999999",
    "/admin/applications/999999999/edit",
    "/admin/settings/nothing",
    "/admin/settings/storage",
)
CURSORS = ("before=x", "after=-1", "before=99999999999999999999")
SEARCHED = ("%00", "%25_%5C", "'%22--", "a" * 200, "%ED%A0%80")


@pytest.mark.long
@pytest.mark.both_databases
def test_invalid_requests_cause_no_server_errors(gatebell: LiveGatebell) -> None:
    lists = ("/admin/users", "/admin/applications")
    expected = {
        **dict.fromkeys(NOT_FOUND, 404),
        **{f"{page}?{cursor}": 400 for page in lists for cursor in CURSORS},
        **{f"{page}?search={search}": 200 for page in lists for search in SEARCHED},
    }
    browser = get_administrator_browser(gatebell)
    told = {path: browser.get(gatebell.url + path).status_code for path in expected}
    assert told == expected
