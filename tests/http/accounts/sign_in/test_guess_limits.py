"""Tests of limits for guesses per network, and of accounts that need more than a password."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update

from models import User
from tests.support.accounts.people import Person, database_of, make_user, try_to_sign_in
from tests.support.oauth.oauth_wire import assert_refused, post_token, read_error_text
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import give_app
from tests.support.wire.html_forms import forms_in
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")

#: Addresses of one household; `NEIGHBOR` is in another one.
HOUSEHOLD = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:2:0:1:2:3")
NEIGHBOR = "2001:db8:1:3::1"
PASSWORD = "correct horse battery staple"


@pytest.fixture
def client(make_app: Callable[[Settings], Flask], settings: Settings) -> FlaskClient:
    """A browser at a service with low limits for guesses per address."""
    few = replace(settings, sign_in_attempts_per_address=2, user_code_attempts_per_address=2)
    app = make_app(few)
    options = ("--email", "alice@people.example", "--password-stdin")
    made = app.test_cli_runner().invoke(args=["users", "create", "alice", *options], input=PASSWORD)
    assert made.exit_code == 0, made.output
    return app.test_client()


def guess(client: FlaskClient, address: str, number: int) -> int:
    """Submit a wrong password on the sign-in page, and return the status."""
    (form,) = [form for form in forms_in(client.get("/users/sign_in").text) if form.has("password")]
    values = dict(form.filled(login=f"name-{number}", password="wrong"))
    answer = client.post("/users/sign_in", data=values, environ_overrides={"REMOTE_ADDR": address})
    return answer.status_code


@pytest.mark.long
@pytest.mark.both_databases
def test_password_guesses_are_limited_per_network(client: FlaskClient) -> None:
    assert [guess(client, *each) for each in zip(HOUSEHOLD, range(3), strict=True)] == [
        422, 422, 429
    ]  # fmt: skip
    assert guess(client, NEIGHBOR, 3) == 422


@pytest.mark.long
def test_guesses_at_the_password_grant_and_the_page_count_together(client: FlaskClient) -> None:
    def ask(address: str) -> int:
        form = {"grant_type": "password", "username": "alice", "password": "wrong"}
        overrides = {"REMOTE_ADDR": address}
        return client.post("/oauth/token", data=form, environ_overrides=overrides).status_code

    assert guess(client, HOUSEHOLD[0], 1) == 422
    assert [ask(HOUSEHOLD[1]), ask(HOUSEHOLD[2]), ask(NEIGHBOR)] == [400, 429, 400]


@pytest.mark.long
def test_guesses_of_device_codes_are_limited_per_network(client: FlaskClient) -> None:
    (form,) = [form for form in forms_in(client.get("/users/sign_in").text) if form.has("password")]
    values = dict(form.filled(login="alice", password=PASSWORD))
    assert client.post("/users/sign_in", data=values).status_code == 302

    def type_code(address: str) -> int:
        page = client.get("/oauth/device").text
        (form,) = [form for form in forms_in(page) if form.has("user_code")]
        overrides = {"REMOTE_ADDR": address}
        values = dict(form.filled(user_code="BCDF-GHJK"))
        return client.post("/oauth/device", data=values, environ_overrides=overrides).status_code

    assert [type_code(address) for address in (*HOUSEHOLD, NEIGHBOR)] == [422, 422, 429, 422]


# Second factors


def exchange(gatebell: LiveGatebell, person: Person, password: str = "") -> tuple[int, str]:
    """Request a token with the password grant, and return the status and the error."""
    form = {"username": person.username, "password": password or person.password}
    answer = post_token(gatebell, {"grant_type": "password", **form})
    return answer.status_code, read_error_text(answer)


@pytest.mark.spec("B8")
def test_a_user_with_a_second_factor_is_rejected_like_a_wrong_password(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    assert exchange(gatebell, charlie)[0] == 200
    give_app(gatebell, charlie)
    form = {"grant_type": "password", "username": charlie.username}
    refused = post_token(gatebell, {**form, "password": charlie.password})
    assert_refused(refused, "invalid_grant")
    assert "personal access token" in refused.json()["error_description"]
    wrong = post_token(gatebell, {**form, "password": "wrong"})
    assert (wrong.status_code, read_error_text(wrong)) == (
        refused.status_code,
        read_error_text(refused),
    )
    # The second request may be in the next minute.
    varying = {"Date", "X-Request-Id"}
    varying |= {f"RateLimit-{name}" for name in ("Observed", "Remaining", "Reset", "ResetTime")}
    same = [
        {name: value for name, value in answer.headers.items() if name not in varying}
        for answer in (refused, wrong)
    ]
    assert same[0] == same[1]


@pytest.mark.spec("B8")
def test_a_personal_access_token_replaces_the_password_of_a_user_with_a_second_factor(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    made = gatebell.cli("tokens", "create", charlie.username, "--name", "x", "--scopes", "api")
    headers = {"PRIVATE-TOKEN": made["token"]}
    user = gatebell.http().get(f"{gatebell.url}/api/v4/user", headers=headers)
    assert user.json()["username"] == charlie.username


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("B8")
def test_the_limit_of_guesses_does_not_reveal_a_right_password(gatebell: LiveGatebell) -> None:
    guessed, known = (make_user(gatebell, name=name) for name in ("charlie", "dora"))
    for person in (guessed, known):
        give_app(gatebell, person)
    wrong = [exchange(gatebell, guessed, "wrong")[0] for _ in range(12)]
    with_right_one = [exchange(gatebell, known, "wrong")[0] for _ in range(5)]
    with_right_one.append(exchange(gatebell, known)[0])
    with_right_one += [exchange(gatebell, known, "wrong")[0] for _ in range(6)]
    assert wrong == with_right_one == [400] * 10 + [429] * 2


def test_a_bot_cannot_sign_in(gatebell: LiveGatebell) -> None:
    robot = make_user(gatebell, name="robot")
    statement = update(User).where(User.username == robot.username).values(kind="bot")
    with database_of(gatebell) as session:
        session.execute(statement)
    assert try_to_sign_in(gatebell, robot.username, robot.password).status_code == 422
    assert exchange(gatebell, robot) == exchange(gatebell, robot, "wrong")
