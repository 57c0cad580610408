"""Authenticator apps and recovery codes of users."""

import re
from datetime import timedelta
from html import unescape
from time import sleep, time
from urllib.parse import urljoin

import pyotp
import requests
from sqlalchemy import select

from domain.accounts.factors.recovery_codes import replace_recovery_codes
from domain.accounts.factors.totp import generate_seed
from domain.accounts.users import get_user
from domain.core.keyring import Keyring
from models import AuditEvent, SignIn, TotpDevice
from tests.support.accounts.people import Person, database_of, now, settings_of
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

SECURITY = "/-/user_settings/security"
TWO_FACTOR = "/users/two_factor"


def give_app(gatebell: LiveGatebell, person: Person) -> pyotp.TOTP:
    """Store a key of an authenticator app for the user."""
    seed = generate_seed()
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        since = now() - timedelta(days=30)
        session.add(
            TotpDevice(
                user_id=user.id,
                seed_ciphertext=Keyring(settings_of(gatebell).secret_key).encrypt(seed),
                created_at=since,
                confirmed_at=since,
                last_used_step=None,
            )
        )
    return pyotp.TOTP(seed)


def give_recovery_codes(gatebell: LiveGatebell, person: Person) -> tuple[str, ...]:
    """Create recovery codes for the user."""
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        keyring = Keyring(settings_of(gatebell).secret_key)
        return replace_recovery_codes(user.id, session=session, keyring=keyring, now=now())


def code_of(app: pyotp.TOTP, *, steps: int = 0) -> str:
    """Return the code of an offset of half minutes from now.

    If it is a past code, enough time remains to use it before it gets older.
    """
    left = app.interval - time() % app.interval
    if steps < 0 and left < 10:
        sleep(left)
    return app.at(now(), counter_offset=steps)


def wrong_code_of(app: pyotp.TOTP) -> str:
    """Return six digits that are no code of the app for some minutes."""
    taken = {app.at(now(), counter_offset=steps) for steps in range(-9, 10)}
    return next(code for number in range(30) if (code := f"{number:06}") not in taken)


def give_password(
    gatebell: LiveGatebell, person: Person, **query: str
) -> tuple[requests.Session, requests.Response]:
    """Submit the password in a new browser; return the browser and the next page."""
    browser = gatebell.http()
    page = browser.get(f"{gatebell.url}/users/sign_in", params=query)
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=person.password)
    assert answer.status_code == 302, answer.text
    return browser, browser.get(urljoin(page.url, answer.headers["Location"]))


def give_code(browser: requests.Session, page: requests.Response, code: str) -> requests.Response:
    """Submit the code of the second step."""
    return submit(browser, page, form_with(page, "code"), code=code)


def sign_in_with(
    gatebell: LiveGatebell, person: Person, code: str, **query: str
) -> requests.Response:
    """Submit password and code in a new browser."""
    return give_code(*give_password(gatebell, person, **query), code)


def is_signed_in(gatebell: LiveGatebell, browser: requests.Session) -> bool:
    answer = browser.get(f"{gatebell.url}/-/user_settings/profile", allow_redirects=False)
    return answer.status_code == 200


def assert_signed_in(answer: requests.Response, *, lands_on: str = "/") -> None:
    assert (answer.status_code, answer.headers.get("Location")) == (302, lands_on), answer.text


def assert_must_begin_again(answer: requests.Response) -> None:
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"].startswith("/users/sign_in"), answer.headers["Location"]


def text_of(page: requests.Response, element_id: str) -> str:
    """Return the text of an element of a page."""
    found = re.search(rf'id="{element_id}">([^<]*)<', page.text)
    assert found, page.text
    return unescape(found[1])


def methods_of(gatebell: LiveGatebell, person: Person) -> str:
    """Return the authentication methods of the user's last sign-in."""
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        newest = select(SignIn.methods).where(SignIn.user_id == user.id)
        return session.scalars(newest.order_by(SignIn.id.desc())).first() or ""


def events_of(gatebell: LiveGatebell, person: Person) -> list[str]:
    """Return the kinds of events about the user's account, oldest first."""
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        kinds = select(AuditEvent.kind).where(AuditEvent.user_id == user.id)
        return list(session.scalars(kinds.order_by(AuditEvent.id)))
