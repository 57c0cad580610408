"""Tests of passkeys as a second factor and as a replacement of passwords, with software keys."""

import json
from dataclasses import replace
from pathlib import Path

import cbor2
import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate
from sqlalchemy import update

from models import Passkey
from tests.http.accounts.settings.test_sessions import COOKIE
from tests.support.accounts.people import (
    Person,
    alice,
    cookie_domain,
    database_of,
    make_user,
    open_browser,
    set_state,
    sign_in,
    signed_in,
)
from tests.support.oauth.oauth_wire import assert_refused, post_token, read_error_text
from tests.support.service.certificates import rsa_key, write_certificate
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.authenticators import base64url
from tests.support.sign_in.passkey_wire import (
    PASSKEYS,
    SIGN_IN,
    add,
    after_password,
    authenticator_for,
    csrf_of,
    give_passkey,
    request_passkey_options,
    request_sign_in_options,
    rows,
    send,
)
from tests.support.sign_in.second_factors import (
    SECURITY,
    TWO_FACTOR,
    assert_signed_in,
    events_of,
    give_app,
    give_code,
    give_password,
    is_signed_in,
    methods_of,
    wrong_code_of,
)
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

# Adding passkeys


@pytest.mark.long
@pytest.mark.both_databases
def test_an_added_passkey_is_required_after_the_password(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    assert (key.credential_id, 0, "usb") in rows(gatebell)
    browser, page = give_password(gatebell, charlie)
    assert page.url == f"{gatebell.url}{TWO_FACTOR}"
    assert not is_signed_in(gatebell, browser)
    assert events_of(gatebell, charlie)[-2:] == ["second_factor.added", "recovery_codes.made"]


@pytest.mark.spec("L5", "L6")
@pytest.mark.parametrize(("bits", "reason"), [(1024, "too weak"), (14_112, "too large")])
def test_a_passkey_with_a_weak_or_huge_key_is_rejected_with_the_reason(
    gatebell: LiveGatebell, charlie: Person, bits: int, reason: str
) -> None:
    browser = open_browser(gatebell, charlie)
    key = authenticator_for(gatebell, key=rsa_key(bits))
    answer = add(gatebell, browser, charlie, key, "Huge key")
    assert f"{bits} bits, which is {reason}" in answer.text
    assert key.credential_id not in {row[0] for row in rows(gatebell)}


@pytest.mark.long
@pytest.mark.spec("L5")
def test_a_passkey_with_a_huge_attestation_key_is_rejected(
    gatebell: LiveGatebell, charlie: Person, tmp_path: Path
) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(f"{gatebell.url}{PASSKEYS}/new")
    words = {"name": "x", "current_password": charlie.password}
    asked = request_passkey_options(browser, page, f"{PASSKEYS}/new.json", **words)
    pem = write_certificate(tmp_path / "maker.pem", rsa_key(8676)).read_bytes()
    statement = {
        "alg": -257,
        "sig": b"\1" * 1085,
        "x5c": [load_pem_x509_certificate(pem).public_bytes(Encoding.DER)],
    }
    key = authenticator_for(gatebell)
    answer = send(browser, page, f"{PASSKEYS}/new", key.make(asked, statement), name="x")
    assert "8676 bits, which is too large" in answer.text
    assert key.credential_id not in {row[0] for row in rows(gatebell)}


@pytest.mark.long
@pytest.mark.spec("L6")
def test_a_stored_weak_key_is_rejected_at_the_sign_in(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    weak = replace(key, key=rsa_key(1024))
    stored = cbor2.dumps(weak.cose())
    with database_of(gatebell) as session:
        session.execute(
            update(Passkey)
            .where(Passkey.credential_id == key.credential_id)
            .values(public_key=stored)
        )
    browser, page, asked = after_password(gatebell, charlie)
    send(browser, page, f"{TWO_FACTOR}/passkey", weak.use(asked))
    assert not is_signed_in(gatebell, browser)


@pytest.mark.long
def test_passkey_options_name_only_the_signed_in_user(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(f"{gatebell.url}{PASSKEYS}/new")
    words = {"name": "x", "current_password": charlie.password}
    asked = request_passkey_options(browser, page, f"{PASSKEYS}/new.json", **words)
    assert asked["rp"]["id"] == "localhost"
    assert asked["user"]["name"] == charlie.username
    # The id consists of 32 bytes that are derived from a key.
    assert len(asked["user"]["id"]) == 43
    assert asked["attestation"] == "none"
    key = authenticator_for(gatebell)
    send(browser, page, f"{PASSKEYS}/new", key.make(asked), name="x")
    again = request_passkey_options(browser, page, f"{PASSKEYS}/new.json", **words)
    assert [each["id"] for each in again["excludeCredentials"]] == [base64url(key.credential_id)]
    other = request_passkey_options(
        *request_sign_in_options(gatebell)[:2], f"{SIGN_IN}/passkey.json"
    )
    assert other["allowCredentials"] == []
    assert other["userVerification"] == "required"


@pytest.mark.long
def test_adding_a_passkey_needs_the_password_and_the_current_challenge(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser, key = open_browser(gatebell, charlie), authenticator_for(gatebell)
    page = browser.get(f"{gatebell.url}{PASSKEYS}/new")
    for words in (
        {"name": "x", "current_password": "wrong"},
        {"name": "x", "current_password": ""},
        {"name": "", "current_password": charlie.password},
        {"name": "x" * 200, "current_password": charlie.password},
    ):
        form = {"csrf_token": csrf_of(page), **words}
        refused = browser.post(f"{gatebell.url}{PASSKEYS}/new.json", form)
        assert refused.status_code == 422
        assert refused.json()["message"]
    forged = {"rp": {"id": "localhost"}, "challenge": base64url(bytes(32))}
    answer = send(browser, page, f"{PASSKEYS}/new", key.make(forged), name="x")
    assert answer.status_code == 422
    words = {"name": "x", "current_password": charlie.password}
    asked = request_passkey_options(browser, page, f"{PASSKEYS}/new.json", **words)
    forms = (key.make(forged), key.make(asked, origin="https://evil.example"), "{}", "")
    for made in forms:
        assert send(browser, page, f"{PASSKEYS}/new", made, name="x").status_code == 422
    # Each challenge can be used only once.
    assert send(browser, page, f"{PASSKEYS}/new", key.make(asked), name="x").status_code == 422
    assert key.credential_id not in {number for number, _, _ in rows(gatebell)}


@pytest.mark.long
def test_a_challenge_of_one_sign_in_is_rejected_in_another(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser, other = open_browser(gatebell, charlie), open_browser(gatebell, charlie)
    page, page_there = (each.get(f"{gatebell.url}{PASSKEYS}/new") for each in (browser, other))
    words = {"name": "x", "current_password": charlie.password}
    asked = request_passkey_options(browser, page, f"{PASSKEYS}/new.json", **words)
    request_passkey_options(other, page_there, f"{PASSKEYS}/new.json", **words)
    made = authenticator_for(gatebell).make(asked)
    assert send(other, page_there, f"{PASSKEYS}/new", made, name="x").status_code == 422
    assert send(browser, page, f"{PASSKEYS}/new", made, name="x").status_code == 302


@pytest.mark.long
@pytest.mark.both_databases
def test_a_passkey_belongs_to_one_account(gatebell: LiveGatebell, charlie: Person) -> None:
    key = give_passkey(gatebell, charlie)
    dora = make_user(gatebell, name="dora")
    assert add(gatebell, open_browser(gatebell, dora), dora, key, "mine now").status_code == 422


@pytest.mark.long
def test_only_the_owner_can_rename_and_remove_a_passkey(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = authenticator_for(gatebell)
    browser = open_browser(gatebell, charlie)
    add(gatebell, browser, charlie, key, "Blue key")
    browser.get(f"{gatebell.url}{SECURITY}/recovery_codes")
    page = browser.get(gatebell.url + SECURITY)
    path = next(
        part
        for part in page.text.split('"')
        if part.startswith(PASSKEYS) and part.endswith("/remove")
    )
    stranger = open_browser(gatebell, alice(gatebell))
    for address in (path, path.removesuffix("/remove")):
        assert stranger.get(gatebell.url + address).status_code == 404
    renaming = browser.get(gatebell.url + path.removesuffix("/remove"))
    submit(browser, renaming, form_with(renaming, "name"), name="Red <b>key</b>")
    assert "Red &lt;b&gt;key" in browser.get(gatebell.url + SECURITY).text
    removing = browser.get(gatebell.url + path)
    form = form_with(removing, "current_password")
    assert submit(browser, removing, form, current_password="wrong").status_code == 422
    assert submit(browser, removing, form, current_password=charlie.password).status_code == 302
    assert is_signed_in(gatebell, sign_in(gatebell, charlie))
    assert events_of(gatebell, charlie).count("second_factor.removed") == 1


# Passkeys as the second step


@pytest.mark.long
@pytest.mark.both_databases
def test_a_passkey_can_be_the_second_step(gatebell: LiveGatebell, charlie: Person) -> None:
    key = give_passkey(gatebell, charlie)
    browser, page, asked = after_password(gatebell, charlie)
    assert [each["id"] for each in asked["allowCredentials"]] == [base64url(key.credential_id)]
    assert_signed_in(send(browser, page, f"{TWO_FACTOR}/passkey", key.use(asked)))
    assert is_signed_in(gatebell, browser)
    assert methods_of(gatebell, charlie) == "pwd hwk mfa"


@pytest.mark.long
def test_a_second_step_does_not_need_user_verification(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie, verifies=False)
    browser, page, asked = after_password(gatebell, charlie)
    answer = send(browser, page, f"{TWO_FACTOR}/passkey?next=/groups", key.use(asked))
    assert_signed_in(answer, lands_on="/groups")


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("counts", [True, False])
def test_a_passkey_response_works_once(
    gatebell: LiveGatebell, charlie: Person, *, counts: bool
) -> None:
    key = give_passkey(gatebell, charlie, counts=counts)
    browser, page, asked = after_password(gatebell, charlie)
    thief = gatebell.http()
    thief.cookies.set(COOKIE, browser.cookies[COOKIE], domain=cookie_domain(gatebell))
    answer = key.use(asked)
    assert_signed_in(send(browser, page, f"{TWO_FACTOR}/passkey", answer))
    copied = send(thief, page, f"{TWO_FACTOR}/passkey", answer)
    assert copied.status_code == 422
    assert not is_signed_in(gatebell, thief)


@pytest.mark.long
def test_a_signature_for_another_purpose_is_rejected(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    other_things = (
        {"origin": "https://evil.example"},
        {"origin": "http://localhost"},
        {"challenge": base64url(bytes(32))},
        {"type": "webauthn.create"},
        {"rp_id": "evil.example"},
    )
    for changes in other_things:
        asked = request_passkey_options(browser, page, f"{TWO_FACTOR}/passkey.json")
        refused = send(browser, page, f"{TWO_FACTOR}/passkey", key.use(asked, **changes))
        assert refused.status_code == 422, changes
        assert "not accepted" in refused.text, changes
        assert not is_signed_in(gatebell, browser), changes
    failures = events_of(gatebell, charlie)[-len(other_things) :]
    assert failures == ["second_factor.failed"] * len(other_things)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_passkey_whose_counter_does_not_increase_is_rejected(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    key.uses = 5
    browser, page, asked = after_password(gatebell, charlie)
    assert_signed_in(send(browser, page, f"{TWO_FACTOR}/passkey", key.use(asked)))
    for uses in (5, 2):
        key.uses = uses
        browser, page, asked = after_password(gatebell, charlie)
        refused = send(browser, page, f"{TWO_FACTOR}/passkey", key.use(asked))
        assert refused.status_code == 422


@pytest.mark.long
def test_a_passkey_of_another_user_is_rejected_as_the_second_step(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    give_passkey(gatebell, charlie)
    dora = make_user(gatebell, name="dora")
    other = give_passkey(gatebell, dora)
    browser, page, asked = after_password(gatebell, charlie)
    refused = send(browser, page, f"{TWO_FACTOR}/passkey", other.use(asked))
    assert refused.status_code == 422
    assert not is_signed_in(gatebell, browser)


@pytest.mark.long
def test_a_passkey_with_another_public_key_is_rejected(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    forger = authenticator_for(gatebell, credential_id=key.credential_id, uses=9)
    browser, page, asked = after_password(gatebell, charlie)
    refused = send(browser, page, f"{TWO_FACTOR}/passkey", forger.use(asked))
    assert refused.status_code == 422


@pytest.mark.long
def test_code_guesses_do_not_lock_out_passkeys_and_passkey_attempts_are_limited(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    app = give_app(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    wrong = wrong_code_of(app)
    assert [give_code(browser, page, wrong).status_code for _ in range(11)][-1] == 429
    browser, page, asked = after_password(gatebell, charlie)
    assert_signed_in(send(browser, page, f"{TWO_FACTOR}/passkey", key.use(asked)))
    statuses = []
    for _ in range(11):
        browser, page, asked = after_password(gatebell, charlie)
        forged = key.use(asked, challenge=base64url(bytes(32)))
        statuses.append(send(browser, page, f"{TWO_FACTOR}/passkey", forged).status_code)
    assert statuses == [422] * 10 + [429]


def test_a_challenge_of_the_second_step_needs_the_first_step(gatebell: LiveGatebell) -> None:
    browser = gatebell.http()
    page = browser.get(gatebell.url + SIGN_IN)
    form = {"csrf_token": csrf_of(page)}
    refused = browser.post(f"{gatebell.url}{TWO_FACTOR}/passkey.json", form)
    assert refused.status_code == 403
    assert "sign in again" in refused.json()["message"]


# Signing in without a password


@pytest.mark.long
@pytest.mark.both_databases
def test_a_passkey_can_replace_name_and_password(gatebell: LiveGatebell, charlie: Person) -> None:
    key = give_passkey(gatebell, charlie)
    browser, page, asked = request_sign_in_options(gatebell)
    answer = send(browser, page, f"{SIGN_IN}/passkey?next=/groups", key.use(asked))
    assert_signed_in(answer, lands_on="/groups")
    assert is_signed_in(gatebell, browser)
    assert methods_of(gatebell, charlie) == "hwk user mfa"


@pytest.mark.long
def test_a_sign_in_without_a_password_needs_user_verification(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie, verifies=False)
    browser, page, asked = request_sign_in_options(gatebell)
    refused = send(browser, page, f"{SIGN_IN}/passkey", key.use(asked))
    assert refused.status_code == 422
    assert not is_signed_in(gatebell, browser)


@pytest.mark.long
def test_a_challenge_of_the_second_step_is_rejected_as_the_first(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    key = give_passkey(gatebell, charlie)
    browser, page, asked = after_password(gatebell, charlie)
    refused = send(browser, page, f"{SIGN_IN}/passkey", key.use(asked))
    assert refused.status_code == 422


@pytest.mark.long
@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_the_passkey_of_a_locked_user_is_rejected(
    gatebell: LiveGatebell, charlie: Person, state: str
) -> None:
    key = give_passkey(gatebell, charlie)
    set_state(gatebell, charlie, state)
    browser, page, asked = request_sign_in_options(gatebell)
    refused = send(browser, page, f"{SIGN_IN}/passkey", key.use(asked))
    assert refused.status_code == 422
    assert "not accepted" in refused.text


def test_an_unknown_passkey_is_rejected(gatebell: LiveGatebell) -> None:
    browser, page, asked = request_sign_in_options(gatebell)
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


@pytest.mark.long
def test_an_invalid_passkey_response_is_rejected_on_each_page(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    give_passkey(gatebell, charlie)
    door, front, _ = request_sign_in_options(gatebell)
    between, step = give_password(gatebell, charlie)
    inside = open_browser(gatebell, dora := make_user(gatebell, name="dora"))
    form = inside.get(f"{gatebell.url}{PASSKEYS}/new")
    words = {"name": "x", "current_password": dora.password}
    for number, credential in enumerate(GARBAGE):
        request_passkey_options(door, front, f"{SIGN_IN}/passkey.json")
        refused = send(door, front, f"{SIGN_IN}/passkey", credential)
        assert refused.status_code == 422, number
        request_passkey_options(between, step, f"{TWO_FACTOR}/passkey.json")
        refused = send(between, step, f"{TWO_FACTOR}/passkey", credential)
        assert refused.status_code == 422, number
        request_passkey_options(inside, form, f"{PASSKEYS}/new.json", **words)
        made = send(inside, form, f"{PASSKEYS}/new", credential, name="x")
        assert made.status_code == 422, (number, made.text)


def test_forged_host_headers_do_not_change_the_relying_party(gatebell: LiveGatebell) -> None:
    browser = gatebell.http()
    page = browser.get(gatebell.url + SIGN_IN)
    forged = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    answer = gatebell.http().post(
        f"{gatebell.url}{SIGN_IN}/passkey.json",
        {"csrf_token": csrf_of(page)},
        headers={**forged, "Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"},
    )
    assert answer.json()["rpId"] == "localhost"


def test_passkey_challenges_need_the_form_token(gatebell: LiveGatebell) -> None:
    for path in (f"{SIGN_IN}/passkey.json", f"{TWO_FACTOR}/passkey.json", f"{PASSKEYS}/new.json"):
        refused = gatebell.http().post(gatebell.url + path, {})
        assert refused.status_code == 400
        assert refused.json()["message"]


@pytest.mark.long
@pytest.mark.spec("B8")
def test_the_password_grant_is_denied_to_a_user_with_a_passkey(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    form = {"grant_type": "password", "username": charlie.username, "password": charlie.password}
    assert post_token(gatebell, form).status_code == 200
    give_passkey(gatebell, charlie)
    refused = post_token(gatebell, form)
    assert_refused(refused, "invalid_grant")
    assert read_error_text(refused) == read_error_text(
        post_token(gatebell, {**form, "password": "wrong"})
    )


# Services without passkeys


def test_passkeys_are_not_offered_without_a_host_name_or_https(few_guesses: LiveGatebell) -> None:
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
