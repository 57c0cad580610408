"""Tests that forms for visitors return to the same page after the session ended."""

import pytest
import requests

from tests.support.accounts.people import alice
from tests.support.accounts.sign_ups import ASK, make_newcomer, sign_up_link, sign_up_links
from tests.support.mail.email_links import list_messages
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

NOTICE = "The page was out of date"


@pytest.fixture
def service(mailing: LiveGatebell) -> LiveGatebell:
    """A service where everyone can sign up."""
    return mailing


def send_late(browser: requests.Session, url: str, field: str, value: str) -> requests.Response:
    """Submit a form after its session ended, and return the next page."""
    page = browser.get(url, timeout=60)
    form = form_with(page, field)
    browser.cookies.clear()
    answer = submit(browser, page, form, **{field: value})
    assert answer.status_code == 303, answer.text
    return browser.get(page.url, timeout=60)


def test_a_late_sign_up_request_shows_the_form_again(service: LiveGatebell) -> None:
    email = make_newcomer().email
    browser = service.http()
    shown = send_late(browser, service.url + ASK, "email", email)
    assert NOTICE in shown.text
    assert sign_up_links(service, email) == []
    assert submit(browser, shown, form_with(shown, "email"), email=email).status_code == 302
    assert len(sign_up_links(service, email)) == 1


def test_a_late_form_of_a_new_account_is_shown_again(service: LiveGatebell) -> None:
    person = make_newcomer()
    link = sign_up_link(service, person.email)
    shown = send_late(service.http(), link, "username", person.username)
    assert NOTICE in shown.text
    assert form_with(shown, "username").has("new_password")


def test_a_late_password_reset_request_shows_the_form_again(service: LiveGatebell) -> None:
    person = alice(service)
    url = f"{service.url}/users/password/new"
    shown = send_late(service.http(), url, "login", person.username)
    assert NOTICE in shown.text
    assert list_messages(service, person.email) == []
