"""Names of cookies, which tell browsers from whom to take them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask

from tests.commands import operate
from tests.html_forms import forms_in
from web.cookies import cookie_name
from web.settings import Settings


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
def test_the_prefix_is_the_strictest_that_browsers_take(base_url: str, name: str) -> None:
    assert cookie_name("it", base_url) == name


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_under_https_all_cookies_are_of_this_host_alone(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    app = make_app(replace(settings, base_url="https://gate.example"))
    user = operate(app, "users", "create", "alice", "--email", "alice@people.example")
    client = app.test_client()
    https = {"base_url": "https://gate.example"}
    (form,) = [
        form
        for form in forms_in(client.get("/users/sign_in", **https).text)
        if form.has("password")
    ]
    values = dict(form.filled(login="alice", password=user["password"]))
    answer = client.post("/users/sign_in", data=values, **https)
    assert answer.status_code == 302
    cookies = dict(each.split("=", 1) for each in answer.headers.getlist("Set-Cookie"))
    assert set(cookies) == {"__Host-gatebell_session", "__Host-gatebell_browser"}
    for rest in cookies.values():
        assert "; Secure" in rest
        assert "; Path=/" in rest
        assert "Domain" not in rest
