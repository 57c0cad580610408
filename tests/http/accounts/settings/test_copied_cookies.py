"""Copied cookies end when users change their credentials; their own browser stays signed in."""

from collections.abc import Callable

import pyotp
import pytest
import requests

from domain.core.randomness import generate_random_password
from tests.support.accounts.people import Person, cookie_domain, make_user, open_browser
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import code_of, give_app, is_signed_in, text_of
from tests.support.wire.html_forms import form_with, submit

COOKIE = "gatebell_session"
SETTINGS = "/-/user_settings"


def copy_of(gatebell: LiveGatebell, browser: requests.Session) -> requests.Session:
    """Return another browser with the same cookie."""
    copied = gatebell.http()
    copied.cookies.set(COOKIE, browser.cookies[COOKIE], domain=cookie_domain(gatebell))
    return copied


def fill_in(
    gatebell: LiveGatebell, browser: requests.Session, path: str, field: str, **values: str
) -> None:
    page = browser.get(f"{gatebell.url}{SETTINGS}{path}")
    answer = submit(browser, page, form_with(page, field), **values)
    assert answer.status_code == 302, answer.text


def change_password(gatebell: LiveGatebell, browser: requests.Session, person: Person) -> None:
    new = generate_random_password()
    given = {"current_password": person.password, "new_password": new, "repeat_password": new}
    fill_in(gatebell, browser, "/security", "new_password", **given)


def add_app(gatebell: LiveGatebell, browser: requests.Session, person: Person) -> None:
    page = browser.get(f"{gatebell.url}{SETTINGS}/security/authenticator")
    app = pyotp.TOTP(text_of(page, "seed").replace(" ", ""))
    given = {"code": code_of(app), "current_password": person.password}
    assert submit(browser, page, form_with(page, "code"), **given).status_code == 302


def remove_app(gatebell: LiveGatebell, browser: requests.Session, person: Person) -> None:
    given = {"current_password": person.password}
    fill_in(gatebell, browser, "/security/authenticator/remove", "current_password", **given)


def renew_codes(gatebell: LiveGatebell, browser: requests.Session, person: Person) -> None:
    given = {"current_password": person.password}
    fill_in(gatebell, browser, "/security/recovery_codes/renew", "current_password", **given)


def change_password_with_app(
    gatebell: LiveGatebell, browser: requests.Session, person: Person
) -> None:
    change_password(gatebell, browser, person)


Change = Callable[[LiveGatebell, requests.Session, Person], None]
WITH_APP: tuple[Change, ...] = (change_password_with_app, remove_app, renew_codes)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "change", [change_password, change_password_with_app, add_app, remove_app, renew_codes]
)
def test_a_copied_cookie_ends_and_the_users_browser_stays_signed_in(
    gatebell: LiveGatebell, change: Change
) -> None:
    person = make_user(gatebell)
    if change in WITH_APP:
        give_app(gatebell, person)
    browser = open_browser(gatebell, person)
    copied = copy_of(gatebell, browser)
    assert is_signed_in(gatebell, copied)
    change(gatebell, browser, person)
    assert is_signed_in(gatebell, browser)
    assert not is_signed_in(gatebell, copied)
    # The browser's old cookie ended, too.
    assert copied.cookies.get(COOKIE) != browser.cookies.get(COOKIE)


def test_a_wrong_password_does_not_end_a_copied_cookie(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    browser = open_browser(gatebell, person)
    copied = copy_of(gatebell, browser)
    page = browser.get(f"{gatebell.url}{SETTINGS}/security")
    answer = submit(
        browser,
        page,
        form_with(page, "new_password"),
        current_password="wrong",
        new_password=generate_random_password(),
    )
    assert answer.status_code == 422
    assert is_signed_in(gatebell, copied)
