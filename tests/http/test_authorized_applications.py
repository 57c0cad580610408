"""The page of applications that one let in."""

import pytest

from tests.html_forms import form_to, submit
from tests.live import LiveGatebell
from tests.oauth_wire import (
    ask,
    decide,
    landing,
    pair_in,
    redeem,
    refresh,
    token_info,
)
from tests.people import bob, make_application, make_user, sign_in

PAGE = "/-/user_settings/authorized_applications"


@pytest.mark.spec("F5")
def test_who_revokes_an_application_ends_its_tokens_and_is_asked_again(
    gatebell: LiveGatebell,
) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    browser = sign_in(gatebell, make_user(gatebell))
    code = landing(decide(browser, ask(browser, gatebell, board)))["code"]
    pair = pair_in(redeem(gatebell, board, code))

    page = browser.get(gatebell.url + PAGE)
    assert page.text.count("Deploy Board") >= 1
    assert "read_user" in page.text
    answer = submit(browser, page, form_to(page, "/revoke"))

    assert answer.status_code == 302
    assert token_info(gatebell, pair.access).status_code == 401
    assert refresh(gatebell, board, pair.refresh).json()["error"] == "invalid_grant"
    assert "No application can use your account" in browser.get(gatebell.url + PAGE).text
    asked_again = ask(browser, gatebell, board)
    assert asked_again.status_code == 200
    assert "Authorize Deploy Board" in asked_again.text.replace("<bdi>", "").replace("</bdi>", "")


@pytest.mark.spec("F5")
def test_a_code_that_was_not_redeemed_yet_dies_with_the_revocation(
    gatebell: LiveGatebell,
) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    browser = sign_in(gatebell, make_user(gatebell))
    first = landing(decide(browser, ask(browser, gatebell, board)))["code"]
    pair_in(redeem(gatebell, board, first))
    second = landing(ask(browser, gatebell, board))["code"]

    page = browser.get(gatebell.url + PAGE)
    submit(browser, page, form_to(page, "/revoke"))

    assert redeem(gatebell, board, second).json()["error"] == "invalid_grant"


@pytest.mark.spec("F5")
def test_nobody_revokes_what_others_authorized(gatebell: LiveGatebell) -> None:
    board = make_application(gatebell, bob(gatebell), name="Deploy Board")
    alice = sign_in(gatebell, make_user(gatebell))
    code = landing(decide(alice, ask(alice, gatebell, board)))["code"]
    pair = pair_in(redeem(gatebell, board, code))
    charlie = sign_in(gatebell, make_user(gatebell, name="charlie"))

    page = charlie.get(gatebell.url + PAGE)
    token = form_to(page, "/users/sign_out").value("csrf_token")
    address = f"{gatebell.url}{PAGE}/{board.id}/revoke"
    charlie.post(address, data={"csrf_token": token}, allow_redirects=False)

    assert token_info(gatebell, pair.access).status_code == 200
