"""Tests of cookie names, whose prefixes tell browsers which senders to accept."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask

from tests.support.service.commands import operate
from tests.support.wire.html_forms import forms_in
from web.http.cookies import build_cookie_name
from web.settings.environment import Settings


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://gate.example", "__Host-it"),
        ("https://gate.example:8443", "__Host-it"),
        ("https://gate.example/gate", "__Secure-it"),
        ("http://gate.example", "it"),
        ("http://gate.example/gate", "it"),
    ],
)
def test_the_prefix_is_the_strictest_that_browsers_accept(base_url: str, name: str) -> None:
    assert build_cookie_name("it", base_url) == name


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("base_url", "prefix", "path"),
    [
        ("https://gate.example", "__Host-", "/"),
        ("https://gate.example/gate", "__Secure-", "/gate"),
        ("http://gate.example", "", "/"),
    ],
)
def test_all_cookies_have_the_prefix_and_its_required_attributes(
    make_app: Callable[[Settings], Flask],
    settings: Settings,
    base_url: str,
    prefix: str,
    path: str,
) -> None:
    app = make_app(replace(settings, base_url=base_url))
    user = operate(app, "users", "create", "alice", "--email", "alice@people.example")
    client = app.test_client()
    page = client.get("/users/sign_in", base_url=base_url)
    (form,) = [form for form in forms_in(page.text) if form.has("password")]
    values = dict(form.filled(login="alice", password=user["password"]))
    answer = client.post("/users/sign_in", data=values, base_url=base_url)
    assert answer.status_code == 302
    cookies = dict(each.split("=", 1) for each in answer.headers.getlist("Set-Cookie"))
    assert set(cookies) == {f"{prefix}gatebell_session", f"{prefix}gatebell_browser"}
    for rest in cookies.values():
        parts = rest.split("; ")
        assert ("Secure" in parts) == bool(prefix)
        assert f"Path={path}" in parts
        assert "Domain" not in rest
