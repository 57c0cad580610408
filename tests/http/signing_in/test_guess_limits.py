"""From where guesses come: a household with millions of addresses is one client."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.support.wire.html_forms import forms_in
from web.settings.reader import Settings

pytestmark = pytest.mark.one_database("sqlite")

#: Of one household, and of its neighbours.
HOUSEHOLD = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:2:0:1:2:3")
NEIGHBOUR = "2001:db8:1:3::1"
PASSWORD = "correct horse battery staple"


@pytest.fixture
def client(make_app: Callable[[Settings], Flask], settings: Settings) -> FlaskClient:
    """A visitor of a service with few guesses for an address."""
    few = replace(settings, sign_in_attempts_per_address=2, user_code_attempts_per_address=2)
    app = make_app(few)
    options = ("--email", "alice@people.example", "--password-stdin")
    made = app.test_cli_runner().invoke(args=["users", "create", "alice", *options], input=PASSWORD)
    assert made.exit_code == 0, made.output
    return app.test_client()


def guess(client: FlaskClient, address: str, number: int) -> int:
    """Guess a password at the sign-in page."""
    (form,) = [form for form in forms_in(client.get("/users/sign_in").text) if form.has("password")]
    values = dict(form.filled(login=f"name-{number}", password="wrong"))
    answer = client.post("/users/sign_in", data=values, environ_overrides={"REMOTE_ADDR": address})
    return answer.status_code


@pytest.mark.both_databases
def test_passwords_are_guessed_by_a_network_and_not_by_an_address(client: FlaskClient) -> None:
    assert [guess(client, *each) for each in zip(HOUSEHOLD, range(3), strict=True)] == [
        422, 422, 429
    ]  # fmt: skip
    assert guess(client, NEIGHBOUR, 3) == 422


def test_the_password_grant_counts_with_the_page(client: FlaskClient) -> None:
    def ask(address: str) -> int:
        form = {"grant_type": "password", "username": "alice", "password": "wrong"}
        overrides = {"REMOTE_ADDR": address}
        return client.post("/oauth/token", data=form, environ_overrides=overrides).status_code

    assert guess(client, HOUSEHOLD[0], 1) == 422
    assert [ask(HOUSEHOLD[1]), ask(HOUSEHOLD[2]), ask(NEIGHBOUR)] == [400, 429, 400]


def test_codes_of_devices_are_guessed_by_a_network(client: FlaskClient) -> None:
    (form,) = [form for form in forms_in(client.get("/users/sign_in").text) if form.has("password")]
    values = dict(form.filled(login="alice", password=PASSWORD))
    assert client.post("/users/sign_in", data=values).status_code == 302

    def type_code(address: str) -> int:
        page = client.get("/oauth/device").text
        (form,) = [form for form in forms_in(page) if form.has("user_code")]
        overrides = {"REMOTE_ADDR": address}
        values = dict(form.filled(user_code="BCDF-GHJK"))
        return client.post("/oauth/device", data=values, environ_overrides=overrides).status_code

    assert [type_code(address) for address in (*HOUSEHOLD, NEIGHBOUR)] == [422, 422, 429, 422]
