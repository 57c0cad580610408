"""Passkeys that stand for name and password, and what does not."""

import json

import pytest

from tests.http.account.test_sessions import COOKIE
from tests.support.accounts.people import (
    Person,
    alice,
    make_user,
    open_browser,
    set_state,
    signed_in,
)
from tests.support.oauth.oauth_wire import assert_refused, post_token, told
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.authenticators import base64url
from tests.support.signing_in.passkey_wire import (
    PASSKEYS,
    SIGN_IN,
    after_password,
    at_the_door,
    authenticator_for,
    csrf_of,
    give_passkey,
    question,
    send,
)
from tests.support.signing_in.second_factors import (
    SECURITY,
    TWO_FACTOR,
    assert_signed_in,
    give_password,
    is_signed_in,
    methods_of,
)

pytestmark = pytest.mark.one_database("sqlite")


# Without a password


@pytest.mark.both_databases
def test_a_passkey_stands_for_name_and_password(gatebell: LiveGatebell, charlie: Person) -> None:
    key = give_passkey(gatebell, charlie)
    browser, page, asked = at_the_door(gatebell)
    answer = send(browser, page, f"{SIGN_IN}/passkey?next=/groups", key.use(asked))
    assert_signed_in(answer, lands_on="/groups")
    assert is_signed_in(gatebell, browser)
    assert methods_of(gatebell, charlie) == "hwk user mfa"


def test_alone_a_key_has_to_make_sure_who_uses_it(gatebell: LiveGatebell, charlie: Person) -> None:
    key = give_passkey(gatebell, charlie, verifies=False)
    browser, page, asked = at_the_door(gatebell)
    refused = send(browser, page, f"{SIGN_IN}/passkey", key.use(asked))
    assert refused.status_code == 422
    assert not is_signed_in(gatebell, browser)


def test_the_second_step_is_no_first_one(gatebell: LiveGatebell, charlie: Person) -> None:
    key = give_passkey(gatebell, charlie)
    browser, page, asked = after_password(gatebell, charlie)
    refused = send(browser, page, f"{SIGN_IN}/passkey", key.use(asked))
    assert refused.status_code == 422


@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_the_passkey_of_who_is_locked_opens_nothing(
    gatebell: LiveGatebell, charlie: Person, state: str
) -> None:
    key = give_passkey(gatebell, charlie)
    set_state(gatebell, charlie, state)
    browser, page, asked = at_the_door(gatebell)
    refused = send(browser, page, f"{SIGN_IN}/passkey", key.use(asked))
    assert refused.status_code == 422
    assert "not accepted" in refused.text


def test_a_passkey_that_nobody_has_opens_nothing(gatebell: LiveGatebell) -> None:
    browser, page, asked = at_the_door(gatebell)
    refused = send(browser, page, f"{SIGN_IN}/passkey", authenticator_for(gatebell).use(asked))
    assert refused.status_code == 422


GARBAGE = (
    "",
    "null",
    "[]",
    "{",
    "[" * 60_000,
    "x" * 200_000,
    json.dumps({"id": "é", "rawId": "é", "type": "public-key", "response": {}}),
    json.dumps(
        {
            "id": "AAAA",
            "rawId": "AAAA",
            "type": "public-key",
            "response": {"clientDataJSON": "e30", "authenticatorData": "", "signature": "\x00"},
        }
    ),
    json.dumps(
        {
            "id": "AAAA",
            "rawId": "AAAA",
            "type": "public-key",
            "response": {
                "clientDataJSON": base64url(b"[" * 9000),
                "authenticatorData": base64url(b"\xff" * 900),
                "signature": "AA",
                "userHandle": "é",
            },
        }
    ),
    json.dumps({"id": 1, "rawId": 10**400, "type": [], "response": None}),
)


def test_garbage_opens_nothing_and_breaks_nothing(gatebell: LiveGatebell, charlie: Person) -> None:
    give_passkey(gatebell, charlie)
    door, front, _ = at_the_door(gatebell)
    between, step = give_password(gatebell, charlie)
    inside = open_browser(gatebell, dora := make_user(gatebell, name="dora"))
    form = inside.get(f"{gatebell.url}{PASSKEYS}/new")
    words = {"name": "x", "current_password": dora.password}
    for number, credential in enumerate(GARBAGE):
        question(door, front, f"{SIGN_IN}/passkey.json")
        refused = send(door, front, f"{SIGN_IN}/passkey", credential)
        assert refused.status_code == 422, number
        question(between, step, f"{TWO_FACTOR}/passkey.json")
        refused = send(between, step, f"{TWO_FACTOR}/passkey", credential)
        assert refused.status_code == 422, number
        question(inside, form, f"{PASSKEYS}/new.json", **words)
        made = send(inside, form, f"{PASSKEYS}/new", credential, name="x")
        assert made.status_code == 422, (number, made.text)


def test_forged_host_headers_change_nothing(gatebell: LiveGatebell) -> None:
    browser = gatebell.http()
    page = browser.get(gatebell.url + SIGN_IN)
    forged = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    answer = gatebell.http().post(
        f"{gatebell.url}{SIGN_IN}/passkey.json",
        {"csrf_token": csrf_of(page)},
        headers={**forged, "Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"},
    )
    assert answer.json()["rpId"] == "localhost"


def test_the_questions_need_the_token_of_the_page(gatebell: LiveGatebell) -> None:
    for path in (f"{SIGN_IN}/passkey.json", f"{TWO_FACTOR}/passkey.json", f"{PASSKEYS}/new.json"):
        refused = gatebell.http().post(gatebell.url + path, {})
        assert refused.status_code == 400
        assert refused.json()["message"]


@pytest.mark.spec("B8")
def test_a_password_is_exchanged_for_no_token_where_there_is_a_passkey(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    form = {"grant_type": "password", "username": charlie.username, "password": charlie.password}
    assert post_token(gatebell, form).status_code == 200
    give_passkey(gatebell, charlie)
    refused = post_token(gatebell, form)
    assert_refused(refused, "invalid_grant")
    assert told(refused) == told(post_token(gatebell, {**form, "password": "wrong"}))


# Where there are none


def test_without_a_name_or_https_no_page_offers_passkeys(few_guesses: LiveGatebell) -> None:
    browser = few_guesses.http()
    page = browser.get(few_guesses.url + SIGN_IN)
    assert "passkey" not in page.text
    refused = browser.post(
        f"{few_guesses.url}{SIGN_IN}/passkey.json", {"csrf_token": csrf_of(page)}
    )
    assert refused.status_code == 404
    inside = signed_in(few_guesses, alice(few_guesses))
    assert f'href="{PASSKEYS}/new"' not in inside.get(few_guesses.url + SECURITY).text
    led = inside.get(f"{few_guesses.url}{PASSKEYS}/new", allow_redirects=False)
    assert (led.status_code, led.headers["Location"]) == (302, SECURITY)
