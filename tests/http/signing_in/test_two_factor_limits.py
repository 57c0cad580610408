"""Where a password alone must not be enough, and how often anything may be guessed."""

import pytest
from sqlalchemy import update

from models import User
from tests.support.accounts.people import Person, database_of, make_user
from tests.support.oauth.oauth_wire import assert_refused, post_token, told
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.second_factors import (
    give_app,
)
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")


def exchange(gatebell: LiveGatebell, person: Person, password: str = "") -> tuple[int, str]:
    """Send name and password for a token; return what came back."""
    form = {"username": person.username, "password": password or person.password}
    answer = post_token(gatebell, {"grant_type": "password", **form})
    return answer.status_code, told(answer)


def try_to_sign_in(gatebell: LiveGatebell, person: Person, password: str) -> int:
    browser = gatebell.http()
    page = browser.get(f"{gatebell.url}/users/sign_in")
    form = form_with(page, "password")
    return submit(browser, page, form, login=person.username, password=password).status_code


@pytest.mark.spec("B8")
def test_who_has_a_second_factor_is_refused_like_a_wrong_password(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    assert exchange(gatebell, charlie)[0] == 200
    give_app(gatebell, charlie)
    form = {"grant_type": "password", "username": charlie.username}
    refused = post_token(gatebell, {**form, "password": charlie.password})
    assert_refused(refused, "invalid_grant")
    assert "personal access token" in refused.json()["error_description"]
    wrong = post_token(gatebell, {**form, "password": "wrong"})
    assert (wrong.status_code, told(wrong)) == (refused.status_code, told(refused))
    varying = {"Date", "X-Request-Id", "RateLimit-Observed", "RateLimit-Remaining"}
    same = [
        {name: value for name, value in answer.headers.items() if name not in varying}
        for answer in (refused, wrong)
    ]
    assert same[0] == same[1]


@pytest.mark.spec("B8")
def test_a_personal_access_token_does_what_the_password_no_longer_does(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    made = gatebell.cli("tokens", "create", charlie.username, "--name", "x", "--scopes", "api")
    headers = {"PRIVATE-TOKEN": made["token"]}
    user = gatebell.http().get(f"{gatebell.url}/api/v4/user", headers=headers)
    assert user.json()["username"] == charlie.username


@pytest.mark.both_databases
@pytest.mark.spec("B8")
def test_nor_does_the_count_of_guesses_tell_that_the_password_was_right(
    gatebell: LiveGatebell,
) -> None:
    guessed, known = (make_user(gatebell, name=name) for name in ("charlie", "dora"))
    for person in (guessed, known):
        give_app(gatebell, person)
    wrong = [exchange(gatebell, guessed, "wrong")[0] for _ in range(12)]
    with_right_one = [exchange(gatebell, known, "wrong")[0] for _ in range(5)]
    with_right_one.append(exchange(gatebell, known)[0])
    with_right_one += [exchange(gatebell, known, "wrong")[0] for _ in range(6)]
    assert wrong == with_right_one == [400] * 10 + [429] * 2


def test_a_bot_signs_in_nowhere(gatebell: LiveGatebell) -> None:
    robot = make_user(gatebell, name="robot")
    statement = update(User).where(User.username == robot.username).values(kind="bot")
    with database_of(gatebell) as session:
        session.execute(statement)
    assert try_to_sign_in(gatebell, robot, robot.password) == 422
    assert exchange(gatebell, robot) == exchange(gatebell, robot, "wrong")
