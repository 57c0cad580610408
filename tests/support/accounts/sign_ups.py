"""Sign-up: the request for a link, the link in the outbox, and the form behind the link."""

import re
from time import time
from typing import Any

import requests
from itsdangerous import TimestampSigner, URLSafeTimedSerializer

from domain.core.randomness import generate_random_password
from tests.support.accounts.people import Person, unique
from tests.support.mail.email_links import list_messages
from tests.support.service.live import SECRET_KEY, LiveGatebell
from tests.support.wire.html_forms import form_with, submit

ASK = "/users/sign_up"


def make_newcomer(name: str = "dora", domain: str = "people.example") -> Person:
    """Return a person without an account."""
    username = unique(name)
    return Person(
        username=username,
        email=f"{username}@{domain}",
        password=f"{generate_random_password()} and more",
    )


def request_sign_up_link(
    service: LiveGatebell,
    email: str,
    *,
    browser: requests.Session | None = None,
    path: str = ASK,
) -> requests.Response:
    """Request a link, in a new browser unless one is given."""
    door = browser or service.http()
    page = door.get(service.url + path)
    return submit(door, page, form_with(page, "email"), email=email)


def sign_up_links(service: LiveGatebell, email: str) -> list[str]:
    """Return the links that were sent to an address, newest first."""
    found = (
        re.search(r"http\S+/users/sign_up/\S+", each) for each in list_messages(service, email)
    )
    return [each[0] for each in found if each]


def sign_up_link(service: LiveGatebell, email: str) -> str:
    answer = request_sign_up_link(service, email)
    assert answer.status_code == 302, answer.text
    return sign_up_links(service, email)[0]


def create_account_from_link(
    service: LiveGatebell,
    link: str,
    person: Person,
    *,
    browser: requests.Session | None = None,
    **more: Any,
) -> requests.Response:
    """Open a link and create the account of a person."""
    door = browser or service.http()
    page = door.get(link)
    assert page.status_code == 200, page.text
    values = {
        "username": person.username,
        "name": "",
        "new_password": person.password,
        "repeat_password": person.password,
    }
    return submit(door, page, form_with(page, "new_password"), **(values | more))


def find_invitation_link(service: LiveGatebell, email: str) -> str:
    """Return the newest invitation link that was sent to an address."""
    found = re.search(r"http\S+/-/invitations/\S+", list_messages(service, email)[0])
    assert found is not None
    return found[0]


def seal_test_value(value: Any, purpose: str, *, age: float = 0, key: str = SECRET_KEY) -> str:
    """Return a value as the service signed it `age` seconds ago."""

    class Former(TimestampSigner):
        def get_timestamp(self) -> int:
            return int(time() - age)

    return str(URLSafeTimedSerializer(key, salt=purpose, signer=Former).dumps(value))


def unseal_test_value(text: str, purpose: str, *, key: str = SECRET_KEY) -> Any:
    """Return the value in a sealed text."""
    return URLSafeTimedSerializer(key, salt=purpose).loads(text)
