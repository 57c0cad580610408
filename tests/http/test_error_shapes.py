"""Shapes of errors: each kind of client gets one shape for every error, as in docs/errors.md."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.service.commands import operate
from web.http.endpoints import ErrorFormat

pytestmark = pytest.mark.one_database("sqlite")

Body = Mapping[str, Any]
JSON = {"Content-Type": "application/json"}


def is_oauth(body: Body) -> bool:
    return set(body) == {"error", "error_description", "error_uri", "request_id"}


def is_api(body: Body) -> bool:
    return (
        set(body) == {"message"}
        or (set(body) == {"message", "errors"} and set(body["message"]) == {"path"})
        or set(body) in ({"error"}, {"error", "errors"})
        or set(body) in ({"error", "error_description"}, {"error", "error_description", "scope"})
    )


def is_message(body: Body) -> bool:
    return {"message"} <= set(body) <= {"message", "errors", "missing"}


def is_event(body: Body) -> bool:
    return {"status", "message"} <= set(body) <= {"status", "message", "errors"}


def is_of_registry(body: Body) -> bool:
    return set(body) == {"errors"} and all(
        set(each) == {"code", "message"} for each in body["errors"]
    )


SHAPES: Mapping[ErrorFormat, Callable[[Body], bool]] = {
    ErrorFormat.OAUTH: is_oauth,
    ErrorFormat.API: is_api,
    ErrorFormat.MESSAGE: is_message,
    ErrorFormat.EVENTS: is_event,
    ErrorFormat.REGISTRY: is_of_registry,
}
#: Requests that fail, by the error format of the client: method, path, options and status.
REQUESTS: Mapping[ErrorFormat, tuple[tuple[str, str, dict[str, Any], int], ...]] = {
    ErrorFormat.OAUTH: (
        ("POST", "/oauth/token", {}, 400),
        ("GET", "/oauth/token", {}, 405),
        ("POST", "/oauth/token/", {}, 404),
        ("POST", "/oauth/token", {"data": {"grant_type": "x", "client_id": "y"}}, 400),
        ("POST", "/oauth/revoke", {"data": {"client_id": "y", "token": "x"}}, 401),
        ("POST", "/oauth/introspect", {"data": b"{", "headers": JSON}, 400),
        ("GET", "/oauth/userinfo", {}, 401),
        ("GET", "/oauth/token/info", {}, 401),
        ("POST", "/oauth/register", {"data": b"x" * 300_000, "headers": JSON}, 404),
    ),
    ErrorFormat.API: (
        ("GET", "/api/v4/nothing", {}, 404),
        ("DELETE", "/api/v4/version", {}, 405),
        ("GET", "/api/v4/user", {}, 401),
        ("GET", "/api/v4/user", {"headers": {"PRIVATE-TOKEN": "wrong"}}, 401),
        ("GET", "/api/v4/users?active=perhaps", {"headers": {"PRIVATE-TOKEN": "{token}"}}, 400),
        ("POST", "/api/v4/applications", {"headers": {"PRIVATE-TOKEN": "{reading}"}}, 403),
        ("POST", "/api/v4/applications", {"headers": {"PRIVATE-TOKEN": "{token}"}}, 403),
        ("GET", "/api/v4/projects/1", {"headers": {"PRIVATE-TOKEN": "{token}"}}, 404),
        (
            *("POST", "/api/v4/groups?path=acme"),
            *({"headers": {"PRIVATE-TOKEN": "{token}"}}, 400),
        ),
    ),
    ErrorFormat.MESSAGE: (
        ("POST", "/acme/none/alerts/notify.json", {"data": b"{}", "headers": JSON}, 404),
        ("POST", "{receiver}", {"data": b"{}", "headers": JSON}, 401),
        ("POST", "{receiver}", {"data": b"{", "headers": {**JSON, "Authorization": "{key}"}}, 400),
        ("POST", "{receiver}", {"data": b"{}", "headers": {"Authorization": "{key}"}}, 415),
        (
            *("POST", "{receiver}"),
            *({"data": b'["x"]', "headers": {**JSON, "Authorization": "{key}"}}, 422),
        ),
        ("GET", "{receiver}", {}, 405),
        ("GET", "/.well-known/nothing", {}, 404),
    ),
    ErrorFormat.EVENTS: (
        ("POST", "/v2/enqueue", {"data": b"{", "headers": JSON}, 400),
        ("POST", "/v2/enqueue", {"data": b'{"routing_key": "x"}', "headers": JSON}, 400),
        ("GET", "/v2/enqueue", {}, 405),
    ),
    ErrorFormat.REGISTRY: (("GET", "/jwt/auth?service=x", {}, 400),),
}


@pytest.fixture
def known(app: Flask) -> dict[str, str]:
    """The credentials of a user, and the path and key of an integration."""
    operate(app, "users", "create", "alice", "--email", "alice@example.org")
    tokens = {
        name: operate(app, "tokens", "create", "alice", "--name", name, "--scopes", scopes)["token"]
        for name, scopes in (("token", "api"), ("reading", "read_user"))
    }
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    made = operate(app, "integrations", "create", "acme/shop", "--type", "http", "--name", "Hook")
    path = re.sub(r"^https?://[^/]+", "", made["url"])
    return {**tokens, "receiver": path, "key": f"Bearer {made['key']}"}


@pytest.mark.long
@pytest.mark.parametrize("spoken", SHAPES)
def test_errors_have_the_shape_of_the_client(
    client: FlaskClient, known: dict[str, str], spoken: ErrorFormat
) -> None:
    for method, path, options, status in REQUESTS[spoken]:
        headers = {name: text.format(**known) for name, text in options.get("headers", {}).items()}
        given = {**options, "headers": headers}
        answer: TestResponse = client.open(path.format(**known), method=method, **given)
        what = (method, path, answer.status_code, answer.text)
        assert answer.status_code == status, what
        assert answer.mimetype == "application/json", what
        assert SHAPES[spoken](answer.get_json()), what
        assert answer.headers["X-Request-Id"], what


def test_browsers_get_an_error_page_with_the_request_id(client: FlaskClient) -> None:
    answer = client.get("/oauth/authorize?client_id=unknown")
    assert answer.status_code == 400
    assert answer.mimetype == "text/html"
    assert "<h1>" in answer.text
    assert answer.headers["X-Request-Id"] in answer.text
