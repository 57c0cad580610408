"""Random values in every parameter of every endpoint: no 5xx, no open redirect, readable errors.

tests/support/wire/endpoints.py lists the endpoints; an unlisted endpoint fails a test.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
import requests
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accounts.people import (
    CALLBACK,
    Person,
    alice,
    bob,
    make_application,
    make_project,
    make_user,
    signed_in,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.device_wire import codes, television
from tests.support.oauth.oauth_wire import machine, new_pair, open_authorization, server_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.endpoints import ENDPOINTS, Endpoint
from tests.support.wire.garbage import TEXT, bounded
from tests.support.wire.html_forms import form_with

#: Almost valid values, which reach more code than random values.
PLAUSIBLE = st.sampled_from(
    (
        "code",
        "read_user",
        "openid profile email offline_access",
        "api",
        CALLBACK,
        "https://evil.example/",
        "urn:ietf:params:oauth:request_uri:x",
        "authorization_code",
        "refresh_token",
        "password",
        "urn:ietf:params:oauth:grant-type:device_code",
        "S256",
        "A" * 43,
        "gba-" + "0" * 49,
        "eyJhbGciOiJub25lIn0.e30.",
        "none",
        "login consent",
        "0",
        "1",
        "-1",
        "99999999999999999999",
        "true",
        "2026-02-30",
        "2026-01-01",
        "2026-01-01T00:00:00+25:00",
        "0001-01-01",
        "9999-12-31",
        "created_desc",
        "keyset",
        "triggered",
        "active",
        "approve",
        "authorize",
        "User",
        "{}",
    )
)
VALUES = TEXT | PLAUSIBLE
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(VALUES, inner, max_size=3),
    max_leaves=6,
)
#: The parameter name for endpoints without parameters.
UNKNOWN = "unknown"
IDS = st.sampled_from(("0", "1", "-1", "2147483648", "9" * 30, "x", "%00", "é", "1.5", "self"))
NAMED = {each.name: each for each in ENDPOINTS}
#: Endpoints of forms, whose first request needs a page.
OF_PAGES = (
    "authorize.decide",
    "device.open_request",
    "device.show_to_phone",
    "device.decide",
    "logout.decide",
)
BLUEPRINTS = ("/oauth/", "/api/v4/", "/.well-known/", "/jwt/")


@pytest.mark.one_database("sqlite")
def test_every_endpoint_is_in_the_list(app: Flask) -> None:
    served = {
        rule.endpoint for rule in app.url_map.iter_rules() if rule.rule.startswith(BLUEPRINTS)
    }
    assert served == set(NAMED)


@cache
def owner(gatebell: LiveGatebell) -> Person:
    """Return a user whose objects may be changed or deleted."""
    return make_user(gatebell, name="owner")


@cache
def administrator(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="admin", admin=True)


@cache
def project_of_the_owner(gatebell: LiveGatebell) -> str:
    return make_project(gatebell, owner(gatebell))


def headers_for(gatebell: LiveGatebell, name: str) -> dict[str, str]:
    """Return the credentials of an endpoint; an endpoint that ends its token gets a new one."""
    if name.endswith("_self"):
        return {"PRIVATE-TOKEN": make_token(gatebell, owner(gatebell)).clear}
    return lasting_headers_for(gatebell, name)


@cache
def lasting_headers_for(gatebell: LiveGatebell, name: str) -> dict[str, str]:
    """Return an administrator's token for endpoints that need one, and the owner's otherwise."""
    for_administrators = ("api_v4.applications.", "api_v4.audit_events.")
    if name.startswith(for_administrators) or name == "api_v4.personal_access_tokens.create":
        return {"PRIVATE-TOKEN": make_token(gatebell, administrator(gatebell)).clear}
    if name.startswith("api_v4."):
        return {"PRIVATE-TOKEN": make_token(gatebell, owner(gatebell)).clear}
    pair = new_pair(gatebell, server_application(gatebell))
    is_opened_by_token = name in {"openid.userinfo", "token.info"}
    return {"Authorization": f"Bearer {pair.access}"} if is_opened_by_token else {}


def address_of(gatebell: LiveGatebell, endpoint: Endpoint, number: str) -> str:
    project = project_of_the_owner(gatebell)
    if endpoint.name.startswith("api_v4.applications."):
        number = "0" if number == "1" else number  # Application 1 belongs to another test.
    path = endpoint.path.format(
        id=quote(number, safe="%"),
        provider="nowhere",
        project=f"projects/{quote(project, safe='')}",
        namespace=f"groups/{quote(project.partition('/')[0], safe='')}",
    )
    return f"{gatebell.url}{path}"


def good(gatebell: LiveGatebell, endpoint: Endpoint) -> dict[str, str]:
    """Return valid values, which make a request almost valid."""
    client = server_application(gatebell)
    known = {
        "client_id": client.client_id,
        "client_secret": client.secret,
        "redirect_uri": client.redirect_uri,
        "response_type": "code",
        "scope": "read_user",
        "name": "x",
        "scopes": "api",
    }
    is_authorize = endpoint.name.startswith("authorize.")
    left_out = {"client_secret"} if is_authorize else set()
    return {
        name: value
        for name, value in known.items()
        if name in endpoint.parameters and name not in left_out
    }


def assert_clear(gatebell: LiveGatebell, answer: requests.Response) -> None:
    """Check the properties of every answer."""
    assert answer.status_code < 500, f"{answer.status_code}: {answer.text}"
    assert "Traceback" not in answer.text
    assert "X-Injected" not in answer.headers
    where = answer.headers.get("Location", "/")
    is_here = where.startswith(f"{gatebell.url}/") or (where[0] == "/" and where[:2] != "//")
    assert is_here or where.startswith((f"{CALLBACK}?", "https://client.example/signed-out?a=b"))
    if answer.status_code >= 400 and not answer.headers["Content-Type"].startswith("text/html"):
        assert_readable(answer)


def assert_readable(answer: requests.Response) -> None:
    """Check that an error for a machine has a message."""
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    if "errors" in body:  # The format of Docker's registry.
        body = body["errors"][0]
    assert isinstance(body.get("error", body.get("message")), str), body
    assert isinstance(body.get("error_description", ""), str), body


def send(
    gatebell: LiveGatebell, endpoint: Endpoint, number: str, pairs: Sequence[tuple[str, str]]
) -> requests.Response:
    """Send a request: GET and DELETE with a query, other methods with a form."""
    is_in_query = endpoint.method in {"GET", "DELETE"}
    return machine(gatebell).request(
        endpoint.method,
        address_of(gatebell, endpoint, number),
        params=list(pairs) if is_in_query else None,
        data=None if is_in_query else list(pairs),
        headers=headers_for(gatebell, endpoint.name),
        allow_redirects=False,
    )


def send_json(
    gatebell: LiveGatebell, endpoint: Endpoint, number: str, body: Any
) -> requests.Response:
    """Send a request with a JSON body, which may contain NaN."""
    headers = {**headers_for(gatebell, endpoint.name), "Content-Type": "application/json"}
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    return machine(gatebell).request(
        endpoint.method, address_of(gatebell, endpoint, number), data=content, headers=headers
    )


def drawn_from(draw: Callable[[Any], Any], endpoint: Endpoint) -> list[tuple[str, str]]:
    """Draw some parameters, some of them twice."""
    names = st.sampled_from(endpoint.parameters or (UNKNOWN,))
    pairs: list[tuple[str, str]] = draw(st.lists(st.tuples(names, VALUES), max_size=5))
    return pairs


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [each.name for each in ENDPOINTS if each.name not in OF_PAGES])
@bounded(2)
@given(data=st.data())
def test_random_parameters_of_every_endpoint_are_handled(
    live_postgres: LiveGatebell, name: str, data: st.DataObject
) -> None:
    endpoint = NAMED[name]
    pairs = drawn_from(data.draw, endpoint)
    number = data.draw(IDS)
    changed = {known for known, _ in pairs}
    kept = [pair for pair in good(live_postgres, endpoint).items() if pair[0] not in changed]
    for form in (pairs, [*kept, *pairs]):
        assert_clear(live_postgres, send(live_postgres, endpoint, number, form))
    if endpoint.method in {"POST", "PUT"}:
        known = st.sampled_from(endpoint.parameters or (UNKNOWN,))
        body = data.draw(st.dictionaries(known, JSON, max_size=4) | JSON)
        assert_clear(live_postgres, send_json(live_postgres, endpoint, number, body))


@cache
def pages(gatebell: LiveGatebell) -> dict[str, tuple[requests.Session, requests.Response, str]]:
    """Open the page of each form; return the browser, the page and the name of a field."""
    browser = signed_in(gatebell, alice(gatebell))
    client = make_application(gatebell, bob(gatebell))
    device = codes(gatebell, television(gatebell))
    typed = browser.get(f"{gatebell.url}/oauth/device")
    form = form_with(typed, "user_code").filled(user_code=device["user_code"])
    question = browser.post(f"{gatebell.url}/oauth/device", data=form)
    return {
        "authorize.decide": (browser, open_authorization(browser, gatebell, client), "decision"),
        "device.open_request": (browser, typed, "user_code"),
        "device.show_to_phone": (
            browser,
            browser.get(f"{gatebell.url}/oauth/device/phone"),
            "user_code",
        ),
        "device.decide": (browser, question, "decision"),
        "logout.decide": (browser, browser.get(f"{gatebell.url}/oauth/logout"), "decision"),
    }


@pytest.mark.long
@pytest.mark.parametrize("name", OF_PAGES)
@bounded(6)
@given(data=st.data())
def test_random_fields_of_every_form_are_handled(
    live_postgres: LiveGatebell, name: str, data: st.DataObject
) -> None:
    endpoint = NAMED[name]
    browser, page, field = pages(live_postgres)[name]
    values = {
        each: data.draw(VALUES) for each in data.draw(st.sets(st.sampled_from(endpoint.parameters)))
    }
    if name == "logout.decide":
        values.setdefault("decision", "stay")
    answer = browser.post(
        f"{live_postgres.url}{endpoint.path}",
        data=form_with(page, field).filled(**values),
        allow_redirects=False,
    )
    assert_clear(live_postgres, answer)
    assert browser.get(f"{live_postgres.url}/-/user_settings/profile").url.endswith("/profile")
