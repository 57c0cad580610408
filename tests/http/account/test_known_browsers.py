"""A browser in which somebody signed in before: strangers who guess do not keep it out."""

from collections.abc import Iterator

import pytest
import requests

from tests.conftest import KINDS
from tests.support.html_forms import form_with, submit
from tests.support.live import LiveGatebell, NewService, running
from tests.support.people import Person, make_user, sign_in
from tests.support.second_steps import code_of, give_app, give_code

COOKIE = "gatebell_browser"


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[LiveGatebell]:
    """A service with few guesses for each account and each address."""
    live = new_service(
        request.param, SIGN_IN_ATTEMPTS_PER_ACCOUNT="3", SIGN_IN_ATTEMPTS_PER_ADDRESS="1000"
    )
    with running(live):
        yield live


def known_browser(own: LiveGatebell, *people: Person) -> requests.Session:
    """Return a browser in which these people signed in and out again, long ago."""
    browser = own.http()
    for person in people:
        assert knock(own, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]
    return browser


def knock(own: LiveGatebell, browser: requests.Session, login: str, password: str) -> int:
    page = browser.get(f"{own.url}/users/sign_in")
    form = form_with(page, "password")
    return submit(browser, page, form, login=login, password=password).status_code


def lock_out(own: LiveGatebell, person: Person) -> None:
    """Guess until the account has to wait, as a stranger can who knows its name."""
    statuses = [knock(own, own.http(), person.username, "wrong") for _ in range(4)]
    assert statuses == [422, 422, 422, 429]


def test_strangers_lock_out_strangers_only(own: LiveGatebell) -> None:
    person = make_user(own)
    browser = known_browser(own, person)
    lock_out(own, person)
    assert knock(own, own.http(), person.username, person.password) == 429
    assert knock(own, browser, person.email.upper(), person.password) == 302
    # That it came in does not give strangers more guesses.
    assert knock(own, own.http(), person.username, person.password) == 429


def test_a_known_browser_has_so_many_guesses_and_no_more(own: LiveGatebell) -> None:
    person = make_user(own)
    browser = known_browser(own, person)
    statuses = [knock(own, browser, person.username, "wrong") for _ in range(4)]
    assert statuses == [422, 422, 422, 429]
    assert knock(own, browser, person.username, person.password) == 429
    # Nor do they keep the owner out of another one.
    assert knock(own, own.http(), person.username, person.password) == 302


def test_a_right_password_begins_the_count_anew(own: LiveGatebell) -> None:
    person = make_user(own)
    browser = known_browser(own, person)
    for _ in range(3):
        assert knock(own, browser, person.username, "wrong") == 422
        assert knock(own, browser, person.username, "wrong") == 422
        assert knock(own, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]


def test_a_browser_is_known_for_those_who_signed_in_there_and_for_nobody_else(
    own: LiveGatebell,
) -> None:
    alice, bob, carol = make_user(own), make_user(own), make_user(own)
    browser = known_browser(own, alice, bob)
    for person in (alice, bob, carol):
        lock_out(own, person)
    assert knock(own, browser, carol.username, carol.password) == 429
    for person in (alice, bob):
        assert knock(own, browser, person.username, person.password) == 302
        del browser.cookies["gatebell_session"]


@pytest.mark.parametrize("change", ["", "nonsense", "cut", "other"])
def test_a_cookie_that_we_did_not_make_is_nothing(own: LiveGatebell, change: str) -> None:
    person = make_user(own)
    browser = known_browser(own, person)
    sealed = browser.cookies[COOKIE]
    # A secret of ours for another purpose is none, either.
    other = sign_in(own, person)
    other.get(f"{own.url}/-/user_settings/security/authenticator")
    forged = {"cut": sealed[:-5], "other": other.cookies["gatebell_session"]}.get(change, change)
    browser.cookies.set(COOKIE, forged, domain="127.0.0.1", path="/")
    lock_out(own, person)
    assert knock(own, browser, person.username, person.password) == 429


def test_the_first_step_of_two_makes_no_browser_known(own: LiveGatebell) -> None:
    person = make_user(own)
    give_app(own, person)
    thief = own.http()
    assert knock(own, thief, person.username, person.password) == 302
    assert COOKIE not in thief.cookies


def test_both_steps_are_open_to_a_known_browser_at_an_address_that_has_to_wait(
    new_service: NewService,
) -> None:
    with running(new_service(SIGN_IN_ATTEMPTS_PER_ADDRESS="3")) as live:
        person = make_user(live)
        browser = known_browser(live, person)
        seed = give_app(live, person)
        wrong = [knock(live, live.http(), f"somebody-{number}", "wrong") for number in range(4)]
        assert wrong == [422, 422, 422, 429]
        page = browser.get(f"{live.url}/users/sign_in")
        form = form_with(page, "password")
        first = submit(browser, page, form, login=person.username, password=person.password)
        assert "two_factor" in first.headers["Location"]
        page = browser.get(live.url + first.headers["Location"])
        assert give_code(browser, page, code_of(seed)).headers["Location"] == "/"
