"""Tests that only one of several concurrent password changes succeeds and stays signed in."""

from collections.abc import Callable
from functools import partial

import pytest
import requests

from domain.core.randomness import generate_random_password
from tests.http.accounts.settings.test_copied_cookies import COOKIE, SETTINGS
from tests.http.accounts.settings.test_sessions import with_cookie
from tests.support.accounts.administration import find_user_id, get_administrator_browser
from tests.support.accounts.people import Person, make_user, open_browser
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import is_signed_in
from tests.support.wire.html_forms import form_to, form_with, submit

Action = Callable[[], requests.Response]
PARALLEL = 5
ROUNDS = 3


def change(gatebell: LiveGatebell, browser: requests.Session, person: Person, new: str) -> Action:
    """Return a function that submits the form of an open page."""
    page = browser.get(f"{gatebell.url}{SETTINGS}/security")
    form = form_with(page, "new_password")
    given = {"current_password": person.password, "new_password": new, "repeat_password": new}
    return partial(submit, browser, page, form, **given)


def can_sign_in(gatebell: LiveGatebell, person: Person, password: str) -> bool:
    browser = gatebell.http()
    page = browser.get(f"{gatebell.url}/users/sign_in")
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=password)
    return answer.status_code == 302


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("are_copies", [True, False])
def test_only_one_concurrent_password_change_succeeds(
    gatebell: LiveGatebell, *, are_copies: bool
) -> None:
    for _ in range(ROUNDS):
        person = make_user(gatebell)
        browsers = [open_browser(gatebell, person) for _ in range(PARALLEL)]
        if are_copies:
            cookie = browsers[0].cookies[COOKIE]
            browsers = [with_cookie(gatebell, cookie) for _ in range(PARALLEL)]
        new = [generate_random_password() for _ in browsers]
        answers = run_simultaneously(
            [change(gatebell, *each) for each in zip_with(person, browsers, new)]
        )
        # The other browsers are signed out, get an error, or have sent a wrong password.
        assert {answer.status_code for answer in answers} <= {302, 409, 422}
        stays = [is_signed_in(gatebell, browser) for browser in browsers]
        works = [can_sign_in(gatebell, person, each) for each in new]
        assert works == stays
        assert not can_sign_in(gatebell, person, person.password)
        assert sum(stays) == 1


def zip_with(
    person: Person, browsers: list[requests.Session], new: list[str]
) -> list[tuple[requests.Session, Person, str]]:
    return [(browser, person, each) for browser, each in zip(browsers, new, strict=True)]


@pytest.mark.both_databases
def test_an_administrator_s_reset_wins_against_a_concurrent_change(
    gatebell: LiveGatebell,
) -> None:
    root = get_administrator_browser(gatebell)
    for _ in range(ROUNDS):
        person, new = make_user(gatebell), generate_random_password()
        thief = open_browser(gatebell, person)
        page = root.get(f"{gatebell.url}/admin/users/{find_user_id(gatebell, person)}")
        reset: Action = partial(submit, root, page, form_to(page, "/reset_password"))
        changed, done = run_simultaneously([change(gatebell, thief, person, new), reset])
        assert done.status_code == 302
        assert changed.status_code in {302, 409, 422}
        assert not is_signed_in(gatebell, thief)
        assert not can_sign_in(gatebell, person, new)
