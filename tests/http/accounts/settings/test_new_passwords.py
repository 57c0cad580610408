"""Tests that users with a password chosen by an administrator have to change it first."""

import pytest
import requests
from sqlalchemy import update

from models import User
from tests.support.accounts.people import Person, database_of, make_user, open_browser
from tests.support.oauth.oauth_wire import (
    assert_refused,
    authorization_url,
    open_authorization,
    parse_redirect,
    post_token,
    read_error_text,
    server_application,
)
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import SECURITY
from tests.support.wire.html_forms import form_with, forms_in, submit

pytestmark = pytest.mark.one_database("sqlite")

NEW = "a new password, much better"


@pytest.fixture
def charlie(gatebell: LiveGatebell) -> Person:
    """A user whose password was set by an administrator."""
    person = make_user(gatebell, name="charlie")
    statement = update(User).where(User.username == person.username)
    with database_of(gatebell) as session:
        session.execute(statement.values(must_change_password=True))
    return person


def assert_redirected(answer: requests.Response) -> None:
    assert (answer.status_code, answer.headers["Location"]) == (302, SECURITY)


def test_every_page_redirects_to_the_password_change(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    paths = (
        *("/", "/groups", "/nothing/here", "/oauth/device", "/-/user_settings/profile"),
        *(f"{SECURITY}/authenticator", f"{SECURITY}/passkeys/new", "/users/sign_in"),
    )
    for path in paths:
        assert_redirected(browser.get(gatebell.url + path, allow_redirects=False))
    asked = authorization_url(gatebell, server_application(gatebell))
    assert_redirected(browser.get(asked, allow_redirects=False))
    page = browser.get(gatebell.url + SECURITY)
    assert "Choose a new password" in page.text
    token = form_with(page, "new_password").value("csrf_token")
    form = {"csrf_token": token, "path": "mine"}
    assert_redirected(browser.post(f"{gatebell.url}/groups/new", form, allow_redirects=False))


@pytest.mark.long
def test_all_pages_open_after_the_password_change(gatebell: LiveGatebell, charlie: Person) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + SECURITY)
    words = {"current_password": charlie.password, "new_password": NEW, "repeat_password": NEW}
    assert submit(browser, page, form_with(page, "new_password"), **words).status_code == 302
    assert browser.get(f"{gatebell.url}/groups", allow_redirects=False).status_code == 200
    assert "code" in parse_redirect(
        open_authorization(browser, gatebell, server_application(gatebell))
    )


@pytest.mark.parametrize(
    ("path", "onward"),
    [
        ("/groups?page=2", "/groups?page=2"),
        ("//elsewhere.example/acme", "/elsewhere.example/acme"),
        ("/\\elsewhere.example/acme", SECURITY),
        ("/%5Celsewhere.example/acme", SECURITY),
    ],
)
def test_the_password_change_redirects_only_to_local_pages(
    gatebell: LiveGatebell, charlie: Person, path: str, onward: str
) -> None:
    browser = open_browser(gatebell, charlie)
    browser.get(gatebell.url + path, allow_redirects=False)
    page = browser.get(gatebell.url + SECURITY)
    words = {"current_password": charlie.password, "new_password": NEW, "repeat_password": NEW}
    answer = submit(browser, page, form_with(page, "new_password"), **words)
    assert (answer.status_code, answer.headers["Location"]) == (302, onward)


def test_sign_out_and_static_files_are_available_before_the_change(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + SECURITY)
    assert browser.get(f"{gatebell.url}/static/js/page.js", allow_redirects=False).ok
    assert browser.get(f"{gatebell.url}/healthz", allow_redirects=False).ok
    form = next(each for each in forms_in(page.text) if each.action == "/users/sign_out")
    answer = submit(browser, page, form)
    assert answer.headers["Location"].startswith("/users/sign_in")
    again = browser.get(f"{gatebell.url}/users/sign_in", allow_redirects=False)
    assert again.status_code == 200


def test_a_temporary_password_cannot_be_exchanged_for_a_token(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    form = {"grant_type": "password", "username": charlie.username, "password": charlie.password}
    refused = post_token(gatebell, form)
    assert_refused(refused, "invalid_grant")
    assert read_error_text(refused) == read_error_text(
        post_token(gatebell, {**form, "password": "wrong"})
    )
