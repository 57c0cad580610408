"""Guesses of strangers do not keep a known browser out; and how many an address has."""

import pytest
import requests

from tests.support.accounts.people import Person, make_user, open_browser, try_to_sign_in
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.second_factors import (
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


def known_browser(all_over: LiveGatebell, *people: Person) -> requests.Session:
    """Return a browser in which these people signed in and out again, long ago."""
    browser = all_over.http()
    for person in people:
        assert try_in(all_over, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]
    return browser


def try_in(all_over: LiveGatebell, browser: requests.Session, login: str, password: str) -> int:
    return try_to_sign_in(all_over, login, password, browser=browser).status_code


def lock_out(all_over: LiveGatebell, person: Person) -> None:
    """Guess until the account has to wait, as a stranger can who knows its name."""
    statuses = [try_in(all_over, all_over.http(), person.username, "wrong") for _ in range(4)]
    assert statuses == [422, 422, 422, 429]


@pytest.mark.long
def test_strangers_lock_out_strangers_only(all_over: LiveGatebell) -> None:
    person = make_user(all_over)
    browser = known_browser(all_over, person)
    lock_out(all_over, person)
    assert try_in(all_over, all_over.http(), person.username, person.password) == 429
    assert try_in(all_over, browser, person.email.upper(), person.password) == 302
    # That it came in does not give strangers more guesses.
    assert try_in(all_over, all_over.http(), person.username, person.password) == 429


@pytest.mark.long
def test_a_known_browser_has_so_many_guesses_and_no_more(all_over: LiveGatebell) -> None:
    person = make_user(all_over)
    browser = known_browser(all_over, person)
    statuses = [try_in(all_over, browser, person.username, "wrong") for _ in range(4)]
    assert statuses == [422, 422, 422, 429]
    assert try_in(all_over, browser, person.username, person.password) == 429
    # Nor do they keep the owner out of another one.
    assert try_in(all_over, all_over.http(), person.username, person.password) == 302


@pytest.mark.long
def test_a_right_password_begins_the_count_anew(all_over: LiveGatebell) -> None:
    person = make_user(all_over)
    browser = known_browser(all_over, person)
    for _ in range(3):
        assert try_in(all_over, browser, person.username, "wrong") == 422
        assert try_in(all_over, browser, person.username, "wrong") == 422
        assert try_in(all_over, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]


@pytest.mark.long
def test_a_browser_is_known_for_those_who_signed_in_there_and_for_nobody_else(
    all_over: LiveGatebell,
) -> None:
    alice, bob, carol = make_user(all_over), make_user(all_over), make_user(all_over)
    browser = known_browser(all_over, alice, bob)
    for person in (alice, bob, carol):
        lock_out(all_over, person)
    assert try_in(all_over, browser, carol.username, carol.password) == 429
    for person in (alice, bob):
        assert try_in(all_over, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]


@pytest.mark.long
def test_a_cookie_that_we_did_not_make_is_nothing(all_over: LiveGatebell) -> None:
    person = make_user(all_over)
    browser = known_browser(all_over, person)
    sealed = browser.cookies[COOKIE]
    # A secret of ours for another purpose is none, either.
    other = open_browser(all_over, person)
    other.get(f"{all_over.url}/-/user_settings/security/authenticator")
    lock_out(all_over, person)
    for forged in ("", "nonsense", sealed[:-5], other.cookies["gatebell_session"]):
        browser.cookies.set(COOKIE, forged, domain="127.0.0.1", path="/")
        assert try_in(all_over, browser, person.username, person.password) == 429, forged
    browser.cookies.set(COOKIE, sealed, domain="127.0.0.1", path="/")
    assert try_in(all_over, browser, person.username, person.password) == 302


def test_the_first_step_of_two_makes_no_browser_known(all_over: LiveGatebell) -> None:
    person = make_user(all_over)
    give_app(all_over, person)
    thief = all_over.http()
    assert try_in(all_over, thief, person.username, person.password) == 302
    assert COOKIE not in thief.cookies


# At one address


@pytest.mark.long
def test_wrong_codes_and_wrong_passwords_of_an_address_are_counted_together(
    one_house: LiveGatebell,
) -> None:
    charlie, dora, emil = (make_user(one_house, name=name) for name in ("charlie", "dora", "emil"))
    apps = {person: give_app(one_house, person) for person in (charlie, dora)}
    browser, page = give_password(one_house, charlie)
    wrong = wrong_code_of(apps[charlie])
    assert [give_code(browser, page, wrong).status_code for _ in range(3)] == [422] * 3
    browser, page = give_password(one_house, dora)
    assert give_code(browser, page, wrong_code_of(apps[dora])).status_code == 422
    assert try_in(one_house, one_house.http(), emil.username, "wrong") == 422
    assert try_in(one_house, one_house.http(), emil.username, emil.password) == 429
    answer = give_code(browser, page, code_of(apps[dora]))
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.long
def test_the_limit_for_an_account_is_a_setting_and_a_right_code_gives_the_address_its_try_back(
    one_house: LiveGatebell,
) -> None:
    charlie = make_user(one_house, name="charlie")
    give_app(one_house, charlie)
    codes = give_recovery_codes(one_house, charlie)
    for code in codes[:7]:
        assert_signed_in(give_code(*give_password(one_house, charlie), code))
    browser, page = give_password(one_house, charlie)
    statuses = [give_code(browser, page, "000000").status_code for _ in range(4)]
    assert statuses == [422] * 3 + [429]


@pytest.mark.long
def test_both_steps_are_open_to_a_known_browser_at_an_address_that_has_to_wait(
    one_house: LiveGatebell,
) -> None:
    person = make_user(one_house)
    browser = known_browser(one_house, person)
    seed = give_app(one_house, person)
    wrong = [try_in(one_house, one_house.http(), f"somebody-{n}", "wrong") for n in range(6)]
    assert wrong == [422] * 5 + [429]
    page = browser.get(f"{one_house.url}/users/sign_in")
    form = form_with(page, "password")
    first = submit(browser, page, form, login=person.username, password=person.password)
    assert "two_factor" in first.headers["Location"]
    page = browser.get(one_house.url + first.headers["Location"])
    assert give_code(browser, page, code_of(seed)).headers["Location"] == "/"
