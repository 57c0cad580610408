"""Tests of the page of authorized applications."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from models import AccessToken
from tests.support.accounts.people import (
    Person,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    unique,
)
from tests.support.accounts.personal_tokens import Api
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    redeem,
    refresh,
    revoke,
    submit_decision,
    token_info,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("sqlite")

PAGE = "/-/user_settings/authorized_applications"


@pytest.mark.both_databases
@pytest.mark.spec("F5")
@pytest.mark.rfc("rfc9700-4.14.2-c")
def test_a_revocation_ends_tokens_and_the_consent_page_is_shown_again(
    gatebell: LiveGatebell,
) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    browser = open_browser(gatebell, make_user(gatebell))
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, board, code))

    page = browser.get(gatebell.url + PAGE)
    assert page.text.count("Deploy Board") >= 1
    assert "read_user" in page.text
    answer = submit(browser, page, form_to(page, "/revoke"))

    assert answer.status_code == 302
    assert token_info(gatebell, pair.access).status_code == 401
    assert refresh(gatebell, board, pair.refresh).json()["error"] == "invalid_grant"
    assert "No application can access your account" in browser.get(gatebell.url + PAGE).text
    asked_again = open_authorization(browser, gatebell, board)
    assert asked_again.status_code == 200
    assert "Authorize Deploy Board" in asked_again.text.replace("<bdi>", "").replace("</bdi>", "")


@pytest.mark.spec("F5")
def test_a_revocation_ends_unredeemed_codes(gatebell: LiveGatebell) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    browser = open_browser(gatebell, make_user(gatebell))
    first = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    parse_token_pair(redeem(gatebell, board, first))
    second = parse_redirect(open_authorization(browser, gatebell, board))["code"]

    page = browser.get(gatebell.url + PAGE)
    submit(browser, page, form_to(page, "/revoke"))

    assert redeem(gatebell, board, second).json()["error"] == "invalid_grant"


@pytest.mark.spec("F5")
@pytest.mark.parametrize("is_redeemed", [False, True])
def test_a_remembered_consent_without_tokens_is_listed_and_can_be_revoked(
    gatebell: LiveGatebell,
    is_redeemed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    browser = open_browser(gatebell, make_user(gatebell))
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    if is_redeemed:
        revoke(gatebell, board, parse_token_pair(redeem(gatebell, board, code)).access)
    assert "code" in parse_redirect(open_authorization(browser, gatebell, board))

    page = browser.get(gatebell.url + PAGE)
    assert "Deploy Board" in page.text
    assert "read_user, read_api" in words(page) or "read_api, read_user" in words(page)
    assert "Approval remembered" in page.text
    assert "1 application can regain access without asking you." in words(page)
    assert submit(browser, page, form_to(page, "/revoke")).status_code == 302

    assert "Approval remembered" not in browser.get(gatebell.url + PAGE).text
    assert "No application can access your account" in browser.get(gatebell.url + PAGE).text
    assert "decision" in open_authorization(browser, gatebell, board).text


@pytest.mark.both_databases
@pytest.mark.spec("F5")
def test_a_remembered_consent_beyond_the_tokens_is_listed_with_the_application(
    gatebell: LiveGatebell,
) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    browser = open_browser(gatebell, make_user(gatebell))
    small = parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, board, scope="read_user"))
    )["code"]
    parse_token_pair(redeem(gatebell, board, small))
    submit_decision(browser, open_authorization(browser, gatebell, board))
    page = words(browser.get(gatebell.url + PAGE))
    assert "1 application can access your account." in page
    assert "Approval remembered" not in page
    assert "read_api" in page


@pytest.mark.spec("F5")
def test_users_cannot_revoke_authorizations_of_others(gatebell: LiveGatebell) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    alice = open_browser(gatebell, make_user(gatebell))
    code = parse_redirect(submit_decision(alice, open_authorization(alice, gatebell, board)))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, board, code))
    charlie = open_browser(gatebell, make_user(gatebell, name="charlie"))

    page = charlie.get(gatebell.url + PAGE)
    token = form_to(page, "/users/sign_out").value("csrf_token")
    address = f"{gatebell.url}{PAGE}/{board.id}/revoke"
    charlie.post(address, data={"csrf_token": token}, allow_redirects=False)

    assert token_info(gatebell, pair.access).status_code == 200


def password_token(gatebell: LiveGatebell, person: Person, user_agent: str) -> str:
    """Get a token with a name and a password, without an application."""
    form = {"grant_type": "password", "username": person.username, "password": person.password}
    answer = post_token(gatebell, form, headers={"User-Agent": user_agent})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


@pytest.mark.both_databases
@pytest.mark.spec("F5")
def test_the_page_shows_where_and_when_an_application_was_used(gatebell: LiveGatebell) -> None:
    name = unique("board")
    board = make_application(gatebell, bob(gatebell), name=name)
    alice = make_user(gatebell)
    browser = open_browser(gatebell, alice)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    parse_token_pair(redeem(gatebell, board, code))
    with database_of(gatebell) as session:
        tokens = select(AccessToken.id).where(AccessToken.application_id == board.id)
        session.execute(
            update(AccessToken)
            .where(AccessToken.id.in_(tokens))
            .values(
                created_at=now() - timedelta(days=40),
                last_used_at=now() - timedelta(days=3, minutes=1),
                last_used_address="2001:db8::17",
            )
        )

    page = words(browser.get(gatebell.url + PAGE))

    assert f"{name} by Bob" in page
    # The first program authorized the application, and the second used its token.
    assert "a Python program at 2001:db8::17 a Python program at 127.0.0.1" in page
    used = now() - timedelta(days=3, minutes=1)
    assert f"{used.day} {used:%b} {used:%H:%M}" in page


@pytest.mark.long
@pytest.mark.spec("B7")
def test_tokens_from_passwords_without_an_application_have_their_own_row(
    gatebell: LiveGatebell,
) -> None:
    alice = make_user(gatebell)
    tokens = [password_token(gatebell, alice, "backup/2.1") for _ in range(2)]
    others = password_token(gatebell, make_user(gatebell), "curl/8.5")
    browser = open_browser(gatebell, alice)

    page = browser.get(gatebell.url + PAGE)
    assert words(page).count("Password sign-in without an application") >= 1
    assert "backup at 127.0.0.1" in words(page)
    answer = submit(browser, page, form_to(page, "/without_application/revoke"))

    assert answer.status_code == 302
    assert [token_info(gatebell, token).status_code for token in tokens] == [401, 401]
    assert token_info(gatebell, others).status_code == 200
    assert "No authorized applications" in browser.get(gatebell.url + PAGE).text


@pytest.mark.both_databases
@pytest.mark.spec("G1")
def test_api_requests_count_as_use_of_a_token_but_token_info_does_not(
    gatebell: LiveGatebell,
) -> None:
    alice = make_user(gatebell)
    token = password_token(gatebell, alice, "curl/8.5")

    def noted() -> tuple[object, ...] | None:
        columns = AccessToken.last_used_at, AccessToken.last_used_address
        with database_of(gatebell) as session:
            newest = select(*columns).order_by(AccessToken.id.desc()).limit(1)
            row = session.execute(newest).first()
            return tuple(row) if row else None

    assert token_info(gatebell, token).status_code == 200
    assert noted() == (None, None)
    assert Api(gatebell, token).send_request("GET", "/user").status_code == 200
    first = noted()
    assert first is not None
    assert first[1] == "127.0.0.1"
    assert Api(gatebell, token).send_request("GET", "/user").status_code == 200
    assert noted() == first


def test_a_hostile_user_agent_is_escaped(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    password_token(gatebell, alice, "A<b>x</b>{{1234567*7}}" + "y" * 5000)

    page = open_browser(gatebell, alice).get(gatebell.url + PAGE)

    assert page.status_code == 200
    assert "<b>x" not in page.text
    assert "8641969" not in words(page)
