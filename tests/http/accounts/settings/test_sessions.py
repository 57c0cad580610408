"""Tests of signing in and out."""

import re
from html import unescape

import pytest
import requests

from tests.support.accounts.people import (
    Person,
    alice,
    cookie_domain,
    make_user,
    set_state,
    sign_in,
    signed_in,
    try_to_sign_in,
    unique,
)
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import is_signed_in
from tests.support.wire.html_forms import form_with, forms_in, submit

pytestmark = pytest.mark.one_database("postgres")

SIGN_IN = "/users/sign_in"
COOKIE = "gatebell_session"
HOME = "/groups"


def with_cookie(gatebell: LiveGatebell, value: str) -> requests.Session:
    """Return a browser with a copied cookie."""
    browser = gatebell.http()
    browser.cookies.set(COOKIE, value, domain=cookie_domain(gatebell))
    return browser


def sign_out(gatebell: LiveGatebell, browser: requests.Session) -> requests.Response:
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    form = next(each for each in forms_in(page.text) if each.action == "/users/sign_out")
    return submit(browser, page, form)


def test_a_user_signs_in_by_name_or_address_in_any_case(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    for login in (person.username, person.email, f" {person.username.upper()} "):
        answer = try_to_sign_in(gatebell, login, person.password)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/"), login


@pytest.mark.advisory("CVE-2024-41952")
def test_a_wrong_name_a_wrong_password_and_a_locked_account_get_the_same_response(
    gatebell: LiveGatebell,
) -> None:
    locked = make_user(gatebell, name="charlie")
    set_state(gatebell, locked, "locked")
    nobody = unique("nobody")
    answers = [
        (nobody, try_to_sign_in(gatebell, nobody, "a wrong password")),
        (locked.username, try_to_sign_in(gatebell, locked.username, "a wrong password")),
        (locked.username, try_to_sign_in(gatebell, locked.username, locked.password)),
    ]
    assert {answer.status_code for _, answer in answers} == {422}
    texts = {_text_of(answer).replace(name, "NAME") for name, answer in answers}
    assert len(texts) == 1
    assert "Incorrect username or password" in texts.pop()


def _text_of(page: requests.Response) -> str:
    without_token = re.sub(r'name="csrf_token"[^>]*|data-now="[^"]*"', "", page.text)
    return unescape(without_token)


@pytest.mark.long
@pytest.mark.advisory("CVE-2020-26214")
def test_an_invalid_sign_in_is_rejected_on_the_page(gatebell: LiveGatebell) -> None:
    garbage = (
        ("", "x"),
        ("x", ""),
        ("a\x00b", "c\x00d"),
        ("é" * 300, "🔔"),
        ("x" * 400, "x"),
        ("x", "x" * 100_000),
        ("' OR 1=1 --", "' OR 1=1 --"),
    )
    for login, password in garbage:
        answer = try_to_sign_in(gatebell, login, password)
        assert answer.status_code == 422, (login, answer.text)
        assert form_with(answer, "password").value("password") == "", login


def test_the_session_cookie_is_hidden_from_scripts_and_other_sites(gatebell: LiveGatebell) -> None:
    answer = try_to_sign_in(gatebell, alice(gatebell).username, alice(gatebell).password)
    cookies = dict(each.split("=", 1) for each in answer.raw.headers.getlist("Set-Cookie"))
    assert set(cookies) == {COOKIE, "gatebell_browser"}
    for rest in cookies.values():
        attributes = {each.strip().partition("=")[0].lower() for each in rest.split(";")[1:]}
        assert {"httponly", "samesite", "path", "expires"} <= attributes
        assert "SameSite=Lax" in rest
        assert "domain" not in attributes  # The cookie is sent to this host only.
        assert "secure" not in attributes  # The tests use plain HTTP.


@pytest.mark.advisory("CVE-2024-7341")
def test_a_session_fixed_before_the_sign_in_is_useless_after_it(gatebell: LiveGatebell) -> None:
    victim = gatebell.http()
    page = victim.get(gatebell.url + SIGN_IN)
    planted = victim.cookies[COOKIE]
    person = alice(gatebell)
    form = form_with(page, "password")
    submit(victim, page, form, login=person.username, password=person.password)
    assert is_signed_in(gatebell, victim)
    assert victim.cookies[COOKIE] != planted
    assert not is_signed_in(gatebell, with_cookie(gatebell, planted))
    # The form token that the attacker knows is useless, too.
    profile = victim.get(f"{gatebell.url}/-/user_settings/profile")
    signed_out = submit(
        victim, profile, form_with(profile, "email"), csrf_token=form.value("csrf_token")
    )
    assert signed_out.status_code == 400


@pytest.mark.both_databases
def test_signing_out_ends_a_copied_cookie(gatebell: LiveGatebell) -> None:
    browser = sign_in(gatebell, alice(gatebell))
    copied = browser.cookies[COOKIE]
    assert is_signed_in(gatebell, with_cookie(gatebell, copied))
    answer = sign_out(gatebell, browser)
    assert (answer.status_code, answer.headers["Location"]) == (302, SIGN_IN)
    assert not is_signed_in(gatebell, browser)
    assert not is_signed_in(gatebell, with_cookie(gatebell, copied))


@pytest.mark.long
def test_signing_out_keeps_other_browsers_signed_in(gatebell: LiveGatebell) -> None:
    one, other = sign_in(gatebell, alice(gatebell)), sign_in(gatebell, alice(gatebell))
    sign_out(gatebell, one)
    assert is_signed_in(gatebell, other)


@pytest.mark.advisory("CVE-2022-23131")
def test_a_changed_cookie_is_rejected(gatebell: LiveGatebell) -> None:
    cookie = signed_in(gatebell, alice(gatebell)).cookies[COOKIE]
    for forged in (cookie[:-1], cookie + "x", "x" + cookie, "", "x", "e30.x.y"):
        assert not is_signed_in(gatebell, with_cookie(gatebell, forged))


def test_a_blocked_user_is_signed_out_immediately(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = sign_in(gatebell, charlie)
    set_state(gatebell, charlie, "blocked")
    assert not is_signed_in(gatebell, browser)


@pytest.mark.long
@pytest.mark.rfc("oidc-core-3.1.2.3-c")
def test_a_form_without_its_token_is_rejected(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    form = {"login": person.username, "password": person.password}
    in_vain = gatebell.http().post(gatebell.url + SIGN_IN, form)
    assert [each.status_code for each in (*in_vain.history, in_vain)] == [303, 200]
    assert "The page was out of date" in in_vain.text
    browser = sign_in(gatebell, person)
    out = browser.post(f"{gatebell.url}/users/sign_out", allow_redirects=False)
    assert out.status_code == 303
    assert is_signed_in(gatebell, browser)
    assert browser.get(f"{gatebell.url}/users/sign_out").status_code == 405


ELSEWHERE = (
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "/\\evil.example/",
    "\\\\evil.example/",
    "/\t/evil.example/",
    "\t//evil.example/",
    " //evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "//[",
    "https://[",
    "/\t/[",
    "evil.example",
    "@evil.example",
    "/\r\nLocation: https://evil.example/",
    "http://127.0.0.1@evil.example/",
)


@pytest.mark.long
@pytest.mark.advisory("CVE-2020-4037", "CVE-2024-39694")
@pytest.mark.rfc("rfc6749-10.15-a", "rfc9700-2.1-b")
def test_next_does_not_redirect_to_other_sites(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    known = signed_in(gatebell, person)
    for target in ELSEWHERE:
        query = {"next": target}
        again = known.get(gatebell.url + SIGN_IN, params=query, allow_redirects=False)
        assert (again.status_code, again.headers["Location"]) == (302, "/"), target
    for target in ELSEWHERE[:2]:
        answer = try_to_sign_in(gatebell, person.username, person.password, next=target)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/"), target


def test_next_redirects_within_the_service(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    answer = try_to_sign_in(gatebell, person.username, person.password, next="/groups?page=2&x=a+b")
    assert answer.headers["Location"] == "/groups?page=2&x=a+b"


def test_a_user_returns_to_the_requested_page_after_the_sign_in(gatebell: LiveGatebell) -> None:
    browser = gatebell.http()
    wanted = f"{gatebell.url}/-/user_settings/applications?x=y"
    page = browser.get(wanted)
    person = alice(gatebell)
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=person.password)
    assert answer.headers["Location"] == "/-/user_settings/applications?x=y"


@pytest.fixture
def locked_out(gatebell: LiveGatebell) -> Person:
    """A user whose account got too many wrong guesses."""
    victim = make_user(gatebell, name="charlie")
    statuses = [
        try_to_sign_in(gatebell, victim.username, f"wrong {number}").status_code
        for number in range(11)
    ]
    assert statuses == [422] * 10 + [429]
    return victim


@pytest.mark.long
@pytest.mark.both_databases
def test_too_many_guesses_lock_out_even_the_right_password(
    gatebell: LiveGatebell, locked_out: Person
) -> None:
    answer = try_to_sign_in(gatebell, locked_out.username.upper(), locked_out.password)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 600
    assert "Too many attempts" in answer.text
    other = alice(gatebell)
    assert try_to_sign_in(gatebell, other.username, other.password).status_code == 302


@pytest.mark.long
@pytest.mark.both_databases
def test_a_right_password_resets_the_count_of_guesses(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell, name="charlie")
    for _ in range(2):
        for number in range(7):
            wrong = try_to_sign_in(gatebell, person.username, f"wrong {number}")
            assert wrong.status_code == 422
        right = try_to_sign_in(gatebell, person.username, person.password)
        assert right.status_code == 302
