"""Helpers that try passwords."""

import requests

from tests.support.accounts.people import Person
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit


def sign_in_wrongly(live: LiveGatebell, person: Person) -> int:
    with requests.Session() as browser:
        browser.trust_env = False
        page = browser.get(f"{live.url}/users/sign_in", timeout=60)
        form = form_with(page, "password")
        return submit(browser, page, form, login=person.username, password="wrong").status_code


def exchange(live: LiveGatebell, person: Person) -> int:
    form = {
        "grant_type": "password",
        "username": person.username,
        "password": person.password,
    }
    return requests.post(f"{live.url}/oauth/token", data=form, timeout=60).status_code
