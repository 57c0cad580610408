"""Confirmation links for email addresses, read from the outbox of a service."""

import re
from datetime import timedelta
from typing import Any

import requests
from sqlalchemy import delete, select

from domain.accounts.email_addresses import AccountMessageBuilder, request_address_change
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.users import get_user
from domain.core.keyring import Keyring
from models import Mail
from tests.support.accounts.people import (
    Person,
    database_of,
    open_browser,
    settings_of,
    signed_in,
    unique,
)
from tests.support.database.work import work_in
from tests.support.mail.stored_texts import list_texts
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
)
from tests.support.oauth.openid_wire import (
    SCOPES,
    openid_application,
    request_userinfo,
    verify_id_token,
)
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.password_rules import QUICK
from tests.support.wire.html_forms import form_to, form_with, submit

PROFILE = "/-/user_settings/profile"


def new_address() -> str:
    return f"{unique('new')}@people.example"


def list_messages(service: LiveGatebell, email: str) -> list[str]:
    """Return the texts of all messages to an address, newest first."""
    return [*reversed(list_texts(service, email))]


def find_link(service: LiveGatebell, email: str) -> str:
    found = re.search(
        r"http\S+/-/email_confirmations/\S+", "\n".join(list_messages(service, email))
    )
    assert found is not None
    return found[0]


def request_new_address(service: LiveGatebell, person: Person, email: str) -> requests.Response:
    """Request another address on the profile page."""
    browser = open_browser(service, person)
    page = browser.get(service.url + PROFILE)
    values = {"email": email, "current_password": person.password}
    return submit(browser, page, form_with(page, "email"), **values)


def open_and_confirm_link(service: LiveGatebell, person: Person, link: str) -> requests.Response:
    """Open a link as a user and press its button; return the last response."""
    browser = signed_in(service, person)
    page = browser.get(link)
    if page.status_code != 200:
        return page
    return submit(browser, page, form_to(page, link.rpartition("/")[2]))


def read_stored_address(service: LiveGatebell, person: Person) -> tuple[str, bool]:
    """Return the address of an account, and whether it is confirmed."""
    with database_of(service) as session:
        found = get_user(person.username, session=session)
        return found.email, found.email_confirmed_at is not None


def read_claims(service: LiveGatebell, person: Person) -> dict[str, Any]:
    """Return the claims about a user, which are the same in the ID token and at userinfo."""
    client = openid_application(service)
    code = parse_redirect(
        open_authorization(open_browser(service, person), service, client, scope=SCOPES)
    )["code"]
    answer = redeem(service, client, code)
    told: dict[str, Any] = request_userinfo(service, parse_token_pair(answer).access).json()
    claims = verify_id_token(service, answer.json()["id_token"]).claims
    for name in ("email", "email_verified"):
        assert claims[name] == told[name], name
    return told


def create_waiting_link(service: LiveGatebell, person: Person, email: str) -> str:
    """Store an unconfirmed address of a user, and return the path of its link without a message."""
    keyring = Keyring(settings_of(service).secret_key)
    letterhead = AccountMessageBuilder(
        instance_name="", base_url="", keyring=keyring, has_mail_server=True
    )
    with database_of(service) as session:
        user = get_user(person.username, session=session)
        limits = SignInLimits(
            per_account=1,
            per_address=1,
            second_factor_per_account=1,
            window=timedelta(minutes=1),
            cost=QUICK,
        )
        policies = (keyring, letterhead, limits)
        request_address_change(work_in(session, policies=policies), user.id, email)
        sent = keyring.decrypt(
            session.scalar(select(Mail.text_ciphertext).where(Mail.recipient == email)) or ""
        )
        session.execute(delete(Mail).where(Mail.recipient.in_([email, person.email])))
    return f"/-/email_confirmations/{sent.partition('/-/email_confirmations/')[2].split()[0]}"
