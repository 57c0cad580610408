"""Random values in every parameter of every endpoint: no 5xx, no open redirect, readable errors.

The endpoints and parameters are read from the stored OpenAPI document. An endpoint fails a test if
it is neither in the document nor in tests/support/wire/endpoints.py.
"""

import json
import re
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
from tests.support.wire.endpoints import ENDPOINTS, PREFIXES, Operation
from tests.support.wire.garbage import TEXT, bounded
from tests.support.wire.html_forms import form_with
from web.api.openapi.views import list_paths

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
#: Name of a parameter that no endpoint has.
UNKNOWN = "unknown"
IDS = st.sampled_from(("0", "1", "-1", "2147483648", "9" * 30, "x", "%00", "é", "1.5", "self"))
#: Values of variables in URLs that are not IDs.
WORDS = {
    "provider": "nowhere",
    "revision": "main",
    "sha": "0123456789abcdef0123456789abcdef01234567",
    "tag_name": "v1.0",
}
#: Endpoints that are requested with random IDs of a project or group. All others are requested with
#: a project of the owner, which must not be deleted or archived.
OF_ANY_NAMESPACE = {
    *("groups.delete", "groups.show"),
    *("projects.archive", "projects.delete", "projects.show", "projects.unarchive"),
}
#: Endpoints of forms, whose first request needs a page.
OF_PAGES = (
    "authorize.decide",
    "device.open_request",
    "device.show_to_phone",
    "device.decide",
    "logout.decide",
)


@pytest.mark.one_database("sqlite")
def test_every_endpoint_is_in_the_list(app: Flask) -> None:
    served = {
        (method, path.template)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(PREFIXES)
        for path in list_paths(rule, app.url_map)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    listed = [(op.method, op.path) for each in ENDPOINTS.values() for op in each.operations]
    assert set(listed) == served, "run `make docs`, or change tests/support/wire/endpoints.py"
    assert len(listed) == len(served)


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
    if name.startswith(("applications.", "audit_events.", "personal_access_tokens.create")):
        return {"PRIVATE-TOKEN": make_token(gatebell, administrator(gatebell)).clear}
    if ENDPOINTS[name].operations[0].path.startswith("/api/v4/"):
        return {"PRIVATE-TOKEN": make_token(gatebell, owner(gatebell)).clear}
    pair = new_pair(gatebell, server_application(gatebell))
    is_opened_by_token = name in {"openid.userinfo", "oauth.token_info"}
    return {"Authorization": f"Bearer {pair.access}"} if is_opened_by_token else {}


def address_of(gatebell: LiveGatebell, name: str, operation: Operation, number: str) -> str:
    """Return the URL of an operation; the random number replaces all IDs."""
    if name.startswith("applications.") and number == "1":
        number = "0"  # Application 1 belongs to another test.
    path = operation.path
    if name not in OF_ANY_NAMESPACE:
        project = project_of_the_owner(gatebell)
        group, _, _ = project.partition("/")
        path = path.replace("/projects/{id}", f"/projects/{quote(project, safe='')}")
        path = path.replace("/groups/{id}", f"/groups/{group}")
    number = quote(number, safe="%")
    path = re.sub(r"\{(\w+)\}", lambda variable: WORDS.get(variable[1], number), path)
    return f"{gatebell.url}{path}"


def good(gatebell: LiveGatebell, operation: Operation) -> dict[str, str]:
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
    return {name: value for name, value in known.items() if name in operation.parameters}


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
    gatebell: LiveGatebell,
    name: str,
    operation: Operation,
    number: str,
    pairs: Sequence[tuple[str, str]],
) -> requests.Response:
    """Send a request: GET and DELETE with a query, other methods with a form."""
    is_in_query = operation.method in {"GET", "DELETE"}
    return machine(gatebell).request(
        operation.method,
        address_of(gatebell, name, operation, number),
        params=list(pairs) if is_in_query else None,
        data=None if is_in_query else list(pairs),
        headers=headers_for(gatebell, name),
        allow_redirects=False,
    )


def send_json(
    gatebell: LiveGatebell, name: str, operation: Operation, number: str, body: Any
) -> requests.Response:
    """Send a request with a JSON body, which may contain NaN."""
    headers = {**headers_for(gatebell, name), "Content-Type": "application/json"}
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    return machine(gatebell).request(
        operation.method,
        address_of(gatebell, name, operation, number),
        data=content,
        headers=headers,
    )


def drawn_from(draw: Callable[[Any], Any], operation: Operation) -> list[tuple[str, str]]:
    """Draw some parameters, some of them twice."""
    names = st.sampled_from((*operation.parameters, UNKNOWN))
    pairs: list[tuple[str, str]] = draw(st.lists(st.tuples(names, VALUES), max_size=5))
    return pairs


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in ENDPOINTS if name not in OF_PAGES])
@bounded(2)
@given(data=st.data())
def test_random_parameters_of_every_endpoint_are_handled(
    live_postgres: LiveGatebell, name: str, data: st.DataObject
) -> None:
    operation = data.draw(st.sampled_from(ENDPOINTS[name].operations))
    pairs = drawn_from(data.draw, operation)
    number = data.draw(IDS)
    changed = {known for known, _ in pairs}
    kept = [pair for pair in good(live_postgres, operation).items() if pair[0] not in changed]
    for form in (pairs, [*kept, *pairs]):
        assert_clear(live_postgres, send(live_postgres, name, operation, number, form))
    if operation.method in {"POST", "PUT", "PATCH"}:
        known = st.sampled_from((*operation.parameters, UNKNOWN))
        body = data.draw(st.dictionaries(known, JSON, max_size=4) | JSON)
        assert_clear(live_postgres, send_json(live_postgres, name, operation, number, body))


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
    (operation,) = ENDPOINTS[name].operations
    browser, page, field = pages(live_postgres)[name]
    values = {
        each: data.draw(VALUES)
        for each in data.draw(st.sets(st.sampled_from(operation.parameters)))
    }
    if name == "logout.decide":
        values.setdefault("decision", "stay")
    answer = browser.post(
        f"{live_postgres.url}{operation.path}",
        data=form_with(page, field).filled(**values),
        allow_redirects=False,
    )
    assert_clear(live_postgres, answer)
    assert browser.get(f"{live_postgres.url}/-/user_settings/profile").url.endswith("/profile")
