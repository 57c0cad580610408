"""Tests that guesses by strangers do not lock out known browsers, and of limits per address."""

import pytest
import requests

from tests.support.accounts.people import Person, make_user, open_browser, try_to_sign_in
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import (
    assert_signed_in,
    code_of,
    give_app,
    give_code,
    give_password,
    give_recovery_codes,
    wrong_code_of,
)
from tests.support.wire.html_forms import form_with, submit

COOKIE = "gatebell_browser"


def known_browser(many_ips: LiveGatebell, *people: Person) -> requests.Session:
    """Return a browser in which these users signed in a long time ago."""
    browser = many_ips.http()
    for person in people:
        assert try_in(many_ips, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]
    return browser


def try_in(many_ips: LiveGatebell, browser: requests.Session, login: str, password: str) -> int:
    return try_to_sign_in(many_ips, login, password, browser=browser).status_code


def lock_out(many_ips: LiveGatebell, person: Person) -> None:
    """Guess until the account is locked out, as a stranger can."""
    statuses = [try_in(many_ips, many_ips.http(), person.username, "wrong") for _ in range(4)]
    assert statuses == [422, 422, 422, 429]


@pytest.mark.long
def test_guesses_by_strangers_lock_out_only_strangers(many_ips: LiveGatebell) -> None:
    person = make_user(many_ips)
    browser = known_browser(many_ips, person)
    lock_out(many_ips, person)
    assert try_in(many_ips, many_ips.http(), person.username, person.password) == 429
    assert try_in(many_ips, browser, person.email.upper(), person.password) == 302
    # The sign-in does not give strangers more guesses.
    assert try_in(many_ips, many_ips.http(), person.username, person.password) == 429


@pytest.mark.long
def test_guesses_in_a_known_browser_are_limited(many_ips: LiveGatebell) -> None:
    person = make_user(many_ips)
    browser = known_browser(many_ips, person)
    statuses = [try_in(many_ips, browser, person.username, "wrong") for _ in range(4)]
    assert statuses == [422, 422, 422, 429]
    assert try_in(many_ips, browser, person.username, person.password) == 429
    # The guesses do not lock the owner out of other browsers.
    assert try_in(many_ips, many_ips.http(), person.username, person.password) == 302


@pytest.mark.long
def test_a_right_password_resets_the_count_of_a_known_browser(many_ips: LiveGatebell) -> None:
    person = make_user(many_ips)
    browser = known_browser(many_ips, person)
    for _ in range(3):
        assert try_in(many_ips, browser, person.username, "wrong") == 422
        assert try_in(many_ips, browser, person.username, "wrong") == 422
        assert try_in(many_ips, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]


@pytest.mark.long
def test_a_browser_is_known_only_for_users_who_signed_in_there(many_ips: LiveGatebell) -> None:
    alice, bob, carol = make_user(many_ips), make_user(many_ips), make_user(many_ips)
    browser = known_browser(many_ips, alice, bob)
    for person in (alice, bob, carol):
        lock_out(many_ips, person)
    assert try_in(many_ips, browser, carol.username, carol.password) == 429
    for person in (alice, bob):
        assert try_in(many_ips, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]


@pytest.mark.long
def test_a_forged_browser_cookie_is_ignored(many_ips: LiveGatebell) -> None:
    person = make_user(many_ips)
    browser = known_browser(many_ips, person)
    sealed = browser.cookies[COOKIE]
    # A secret of the service for another purpose is ignored, too.
    other = open_browser(many_ips, person)
    other.get(f"{many_ips.url}/-/user_settings/security/authenticator")
    lock_out(many_ips, person)
    for forged in ("", "nonsense", sealed[:-5], other.cookies["gatebell_session"]):
        browser.cookies.set(COOKIE, forged, domain="127.0.0.1", path="/")
        assert try_in(many_ips, browser, person.username, person.password) == 429, forged
    browser.cookies.set(COOKIE, sealed, domain="127.0.0.1", path="/")
    assert try_in(many_ips, browser, person.username, person.password) == 302


def test_the_first_of_two_steps_does_not_make_a_browser_known(many_ips: LiveGatebell) -> None:
    person = make_user(many_ips)
    give_app(many_ips, person)
    thief = many_ips.http()
    assert try_in(many_ips, thief, person.username, person.password) == 302
    assert COOKIE not in thief.cookies


# Limits per address


@pytest.mark.long
def test_wrong_codes_and_wrong_passwords_from_an_address_count_together(
    shared_ip: LiveGatebell,
) -> None:
    charlie, dora, emil = (make_user(shared_ip, name=name) for name in ("charlie", "dora", "emil"))
    apps = {person: give_app(shared_ip, person) for person in (charlie, dora)}
    browser, page = give_password(shared_ip, charlie)
    wrong = wrong_code_of(apps[charlie])
    assert [give_code(browser, page, wrong).status_code for _ in range(3)] == [422] * 3
    browser, page = give_password(shared_ip, dora)
    assert give_code(browser, page, wrong_code_of(apps[dora])).status_code == 422
    assert try_in(shared_ip, shared_ip.http(), emil.username, "wrong") == 422
    assert try_in(shared_ip, shared_ip.http(), emil.username, emil.password) == 429
    answer = give_code(browser, page, code_of(apps[dora]))
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.long
def test_the_limit_per_account_is_configurable_and_right_codes_do_not_count_for_the_address(
    shared_ip: LiveGatebell,
) -> None:
    charlie = make_user(shared_ip, name="charlie")
    give_app(shared_ip, charlie)
    codes = give_recovery_codes(shared_ip, charlie)
    for code in codes[:7]:
        assert_signed_in(give_code(*give_password(shared_ip, charlie), code))
    browser, page = give_password(shared_ip, charlie)
    statuses = [give_code(browser, page, "000000").status_code for _ in range(4)]
    assert statuses == [422] * 3 + [429]


@pytest.mark.long
def test_a_known_browser_can_sign_in_from_a_locked_out_address(shared_ip: LiveGatebell) -> None:
    person = make_user(shared_ip)
    browser = known_browser(shared_ip, person)
    seed = give_app(shared_ip, person)
    wrong = [try_in(shared_ip, shared_ip.http(), f"somebody-{n}", "wrong") for n in range(6)]
    assert wrong == [422] * 5 + [429]
    page = browser.get(f"{shared_ip.url}/users/sign_in")
    form = form_with(page, "password")
    first = submit(browser, page, form, login=person.username, password=person.password)
    assert "two_factor" in first.headers["Location"]
    page = browser.get(shared_ip.url + first.headers["Location"])
    assert give_code(browser, page, code_of(seed)).headers["Location"] == "/"
