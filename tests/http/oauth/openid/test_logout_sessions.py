"""Logout with ID tokens: only tokens of the same session need no confirmation."""

import pytest
import requests

from tests.support.accounts.people import Person, make_user, open_browser
from tests.support.oauth.logout_wire import at, end_session, is_signed_in, sign_in_with_id_token
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    revoke,
)
from tests.support.oauth.openid_wire import IdToken, openid_application, verify_id_token
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit


@pytest.fixture
def dora(gatebell: LiveGatebell) -> Person:
    """A user that no other test signs out."""
    return make_user(gatebell, name="dora")


def assert_asked(gatebell: LiveGatebell, browser: requests.Session, token: IdToken) -> None:
    page = at(browser, end_session(gatebell, id_token_hint=token.text))
    assert (page.status_code, "Sign out?" in page.text) == (200, True)
    assert "different account" not in page.text
    assert is_signed_in(gatebell, browser)
    submit(browser, page, form_with(page, "decision"), decision="sign_out")
    assert not is_signed_in(gatebell, browser)


@pytest.mark.both_databases
def test_a_token_of_this_session_signs_out_without_confirmation(
    gatebell: LiveGatebell, dora: Person
) -> None:
    browser, token = sign_in_with_id_token(gatebell, dora)
    at(browser, end_session(gatebell, id_token_hint=token.text))
    assert not is_signed_in(gatebell, browser)


@pytest.mark.both_databases
def test_a_token_of_another_session_needs_a_confirmation(
    gatebell: LiveGatebell, dora: Person
) -> None:
    _, token = sign_in_with_id_token(gatebell, dora)
    assert_asked(gatebell, open_browser(gatebell, dora), token)


def test_a_token_of_a_revoked_application_needs_a_confirmation(
    gatebell: LiveGatebell, dora: Person
) -> None:
    browser, token = sign_in_with_id_token(gatebell, dora)
    listed = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    client = openid_application(gatebell)
    submit(browser, listed, form_to(listed, f"/{client.id}/revoke"))
    assert_asked(gatebell, browser, token)


def test_an_application_may_revoke_its_tokens_first(gatebell: LiveGatebell, dora: Person) -> None:
    browser, client = open_browser(gatebell, dora), openid_application(gatebell)
    code = parse_redirect(open_authorization(browser, gatebell, client, scope="openid"))["code"]
    pair = parse_token_pair(redeem(gatebell, client, code))
    token = verify_id_token(gatebell, pair.answer["id_token"])
    assert revoke(gatebell, client, pair.refresh).status_code == 200
    at(browser, end_session(gatebell, id_token_hint=token.text))
    assert not is_signed_in(gatebell, browser)


def test_the_application_gets_an_error_for_a_hint_of_another_user(
    gatebell: LiveGatebell, dora: Person
) -> None:
    _, token = sign_in_with_id_token(gatebell, make_user(gatebell, name="erin"))
    browser = open_browser(gatebell, dora)
    back = open_authorization(
        browser, gatebell, openid_application(gatebell), scope="openid", id_token_hint=token.text
    )
    brought = parse_redirect(back)
    assert brought["error"] == "login_required"
    assert "not the user of the id_token_hint" in brought["error_description"]
