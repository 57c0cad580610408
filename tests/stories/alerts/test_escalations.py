"""Nights on call with a moved clock: who is paged, when, and on which contact."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from flask import Flask
from flask.testing import FlaskClient

from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactAddress
from domain.paging.notifications.contacts import ContactOwner
from models import Page
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from tests.support.service.message_receiver import Receiver, running_telephone
from web.jobs.alert_changes import AlertChangeJob
from web.jobs.escalations import EscalationJob
from web.settings.environment import Settings


@pytest.fixture
def mailbox() -> Mailbox:
    """Messages that the mail server accepted."""
    return Mailbox()


@pytest.fixture
def shop(settings: Settings, mailbox: Mailbox) -> Iterator[Escalated]:
    """A project whose alerts page Alice and Bob."""
    with running_mail_server(mailbox) as port:
        made = Escalated(settings, port)
        yield made
        made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The chat service of Bob."""
    with running_telephone() as running:
        yield running


def chat_of(shop: Escalated, receiver: Receiver) -> None:
    """Give Bob a contact at an HTTP service, in addition to his email address."""
    address = ContactAddress(
        type=APPRISE,
        clear=receiver.contact_url,
        shown="ntfy://…",
        lane=f"ntfy 127.0.0.1:{receiver.port}",
    )
    shop.contact(ContactOwner(user_id=shop.bob.id), address)


def mails_to(mailbox: Mailbox, name: str) -> list[str]:
    """Return the subjects of the emails to a contact."""
    pairs = zip(mailbox.recipients, mailbox.messages, strict=True)
    return [str(mail["Subject"]) for to, mail in pairs if to == [f"{name}@pager.example"]]


def acknowledge(client: FlaskClient, text: str) -> None:
    """Open the link in a page and press the button, without signing in."""
    link = re.search(r"http://localhost(/-/acknowledge/\S+)", text)
    assert link is not None, text
    page = client.get(link[1])
    assert "Acknowledge" in page.text
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    answer = client.post(link[1], data={"csrf_token": token[1]} if token else {})
    assert answer.status_code in {200, 302, 303}, answer.text


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_second_user_is_paged_and_acknowledges(
    shop: Escalated,
    mailbox: Mailbox,
    receiver: Receiver,
    make_app: Callable[[Settings], Flask],
) -> None:
    # Links expire, and the app uses the real clock.
    shop.now = datetime.now(UTC) - timedelta(minutes=10)
    chat_of(shop, receiver)
    shop.person("carol")
    shop.policy("0s user:alice", "5m user:bob", "15m user:carol", repeats=3)
    alert = shop.alert("Disk full on web-1")
    shop.pass_time(seconds=1)
    assert mails_to(mailbox, "alice") == ["[critical] Disk full on web-1 (acme/shop #1)"]
    shop.pass_time(minutes=5)
    assert mails_to(mailbox, "bob") == ["[critical] Disk full on web-1 (acme/shop #1)"]
    (chat,) = (json.loads(each.body) for each in receiver.received)
    assert "Disk full on web-1" in chat["title"]

    acknowledge(make_app(shop.settings).test_client(), chat["message"])
    for _ in range(4):
        shop.pass_time(minutes=10)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    assert mails_to(mailbox, "carol") == []
    assert shop.escalation(alert).state == "stopped"
    assert ("status", "bob", "acknowledged") in shop.activity(alert)


@pytest.mark.one_database("sqlite")
@pytest.mark.spec("J1")
def test_a_swap_in_the_middle_of_an_escalation_counts(shop: Escalated) -> None:
    schedule = shop.schedule("primary", shop.alice, shop.bob)
    shop.policy("0s schedule:primary", "10m schedule:primary")
    alert = shop.alert()
    shop.pass_time(seconds=1)
    assert shop.paged(alert) == [("alice", 1, 1)]
    # Bob then has this hour, and Alice has one of his hours tomorrow.
    shop.swap(schedule, (shop.alice, 0.1), (shop.bob, 24))
    shop.pass_time(minutes=10)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_a_silence_holds_pages_back_until_its_end(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice", "10m user:bob")
    silence = shop.silence('title=~"Disk.*"', hours=2)
    muted, loud = shop.alert("Disk full"), shop.alert("Load")
    shop.pass_time(seconds=1)
    assert mails_to(mailbox, "alice") == ["[critical] Load (acme/shop #2)"]
    assert shop.escalation(muted).state == "held"
    (said,) = shop.said(muted)
    assert said == "Paging is held back until 2026-03-01 22:00 UTC: silence “deploy”."
    for _ in range(3):
        shop.pass_time(minutes=10)
    assert shop.said(muted) == [said]
    shop.end_silence(silence)
    shop.pass_time(minutes=1)
    assert shop.paged(muted) == [("alice", 1, 1)]
    assert shop.said(muted)[1] == "Paging continues. It was held back: silence “deploy”."
    # The time of the steps was stopped during the silence.
    shop.pass_time(minutes=9)
    assert shop.paged(muted) == [("alice", 1, 1)]
    shop.pass_time(minutes=1)
    assert shop.paged(muted) == [("alice", 1, 1), ("bob", 1, 2)]
    assert shop.paged(loud) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_a_storm_sends_few_pages_with_the_number_of_alerts(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.schedule("primary", shop.alice)
    shop.policy("0s schedule:primary user:alice", "5m user:bob")
    alerts = shop.alerts(500)
    shop.pass_time(seconds=1)
    assert mails_to(mailbox, "alice") == [
        "[critical] 500 alerts in acme/shop: Disk full 1 and others"
    ]
    for alert in alerts[:20]:
        shop.act(alert, "acknowledged", by=shop.alice)
    shop.resolve(alerts[20:100])
    shop.pass_time(minutes=5)
    assert mails_to(mailbox, "bob") == [
        "[critical] 400 alerts in acme/shop: Disk full 101 and others"
    ]
    assert len(shop.rows(Page)) >= 900


@pytest.mark.long
@pytest.mark.spec("J1")
def test_two_workers_on_two_hosts_page_each_user_once(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alerts = shop.alerts(300)

    def work() -> None:
        with (
            AlertChangeJob(shop.settings, clock=lambda: shop.now) as changes,
            EscalationJob(shop.settings, clock=lambda: shop.now) as steps,
        ):
            while changes.process_all_due_work() + steps.process_all_due_work():
                pass

    for _ in range(2):
        workers = [Thread(target=work) for _ in range(2)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        shop.take_steps()
        shop.wait(minutes=5)
    keys = [page.key for page in shop.rows(Page)]
    assert len(keys) == len(set(keys)) == 600
    assert all(shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)] for alert in alerts[::60])
