"""Tests of retries when channels are unavailable, slow or permanently broken."""

from asyncio import WriteTransport
from collections.abc import Iterator, Mapping
from datetime import timedelta
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session
from sqlalchemy import update

from domain.access.roles import Role
from domain.core.keyring import Keyring
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.housekeeping.secret_key_rotation import reencrypt_all_columns
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactAddress
from domain.paging.notifications.contact_types.device import DEVICE
from domain.paging.notifications.contact_types.mail import EMAIL
from domain.paging.notifications.contacts import Contact as ShownContact
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.notifications.message_content import build_page_content
from domain.paging.notifications.message_queue import (
    CONTACT_QUEUE,
    GIVE_UP_AFTER,
    MessageKind,
    queue_message,
)
from domain.paging.notifications.message_queue_state import (
    find_contact_type_states,
    get_message_queue_state,
    requeue_message,
)
from domain.paging.notifications.outbox import find_due_contacts
from domain.paging.notifications.send_checks import find_visible_projects
from models import Contact, Mail, PageMessage, User
from tests.support.database.work import work_in
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.paging import Pages, Person, subjects
from tests.support.service.message_receiver import Received, Receiver, running_telephone
from tests.support.service.ports import free_port
from web.jobs.paging import MAX_MESSAGES_IN_PROGRESS
from web.jobs.scheduler import Scheduler
from web.settings.environment import Settings

AWAY = "smtp://127.0.0.1:1"


class SilentMailbox(Mailbox):
    """Accepts messages, and closes the connection instead of sending some responses."""

    #: Number of the next responses that are lost.
    lost = 0

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        answer = await super().handle_DATA(server, session, envelope)
        if self.lost:
            self.lost -= 1
            assert isinstance(server.transport, WriteTransport)
            server.transport.abort()
        return answer


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_telephone() as running:
        yield running


def apprise(pages: Pages, person: Person, port: int, label: str = "Chat") -> ShownContact:
    """Give a user an Apprise contact that sends JSON."""
    address = ContactAddress(
        type=APPRISE,
        clear=f"ntfy://127.0.0.1:{port}/{label}",
        shown="ntfy://127.0.0.1/…",
        lane=f"ntfy 127.0.0.1:{port}",
    )
    return pages.contact(ContactOwner(user_id=person.id), address, label=label)


def test_retries_start_within_half_a_minute_and_back_off() -> None:
    longest = [
        CONTACT_QUEUE.backoff.compute_pause(count, share=1.0).total_seconds()
        for count in range(1, 12)
    ]
    shortest = [
        CONTACT_QUEUE.backoff.compute_pause(count, share=0.0).total_seconds()
        for count in range(1, 12)
    ]
    assert longest[0] < 30
    assert longest == sorted(longest)
    assert max(longest) <= 400
    assert all(0 < low < high for low, high in zip(shortest, longest, strict=True))


@pytest.mark.parametrize("changes", [{"confirmed_at": None}, {"authorization_id": 1_000}])
def test_pages_are_not_sent_to_a_contact_that_is_no_longer_confirmed(
    pages: Pages, receiver: Receiver, changes: Mapping[str, Any]
) -> None:
    alice = pages.person("alice", has_contact=False)
    apprise(pages, alice, receiver.port)
    receiver.answer = lambda _request: (503, {})
    pages.page([pages.alert()], alice)
    pages.run_for(10)
    assert len(pages.waiting_messages()) == 1
    receiver.answer = lambda _request: (200, {})
    with pages.session() as session:
        # An authorization without a token belongs to an application that lost access.
        session.execute(update(Contact).values(**changes))
    pages.wait(minutes=1)
    pages.run()
    assert receiver.received == []
    assert {row.outcome for row in pages.rows(PageMessage) if row.tries > 1} == {"given_up"}


def test_a_test_message_is_not_sent_to_a_blocked_user(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    assert alice.contact is not None
    with pages.session() as session:
        queue_message(alice.contact.id, MessageKind.TEST, session=session, now=pages.now)
        session.execute(update(User).values(state="blocked"))
    pages.run()
    assert mailbox.messages == []
    assert pages.waiting_messages() == []


def test_a_changed_address_leaves_no_slot_occupied(
    pages: Pages, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = pages.person("alice", has_contact=False)
    apprise(pages, alice, receiver.port)

    def find_and_move(**arguments: Any) -> Any:
        found = find_due_contacts(**arguments)
        with pages.session() as session:
            session.execute(update(Contact).values(lane="another"))
        return found

    monkeypatch.setattr("web.jobs.paging.find_due_contacts", find_and_move)
    with pages.worker() as worker:
        pages.page([pages.alert()], alice)
        pages.wait(seconds=10)
        worker.process_all_due_work()
        assert len(receiver.received) == 1
        assert worker._lanes.free_slots == MAX_MESSAGES_IN_PROGRESS  # noqa: SLF001


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_after_an_hour_long_outage_a_channel_gets_one_message_and_does_not_delay_others(
    pages: Pages, mailbox: Mailbox, receiver: Receiver
) -> None:
    alice, bob = pages.person("alice", has_contact=False), pages.person("bob")
    down = apprise(pages, alice, receiver.port)
    receiver.answer = lambda _request: (503, {})
    with pages.worker() as worker:
        for _ in range(12):
            pages.page([pages.alert()], alice, bob)
            for _ in range(10):
                pages.wait(seconds=30)
                worker.process_all_due_work()
        assert pages.contact_state(down).state == "failing"
        tries = pages.contact_state(down).tries
        assert tries > 12
        with pages.session() as session:
            counted = {
                each.type: each.failed_attempts
                for each in find_contact_type_states(session=session, now=pages.now)
            }
        assert counted == {APPRISE: tries, DEVICE: 0, EMAIL: 0}
        # Meanwhile, Alice's page goes to her account's address.
        addressees = [each[0] for each in mailbox.recipients]
        assert addressees.count("bob@pager.example") == 12
        assert addressees.count("alice@accounts.example") == 12
        receiver.answer = lambda _request: (200, {})
        pages.page([pages.alert("The last one")], alice)
        for _ in range(4):
            pages.wait(seconds=5)
            worker.process_all_due_work()
    (message,) = receiver.received
    assert message.event["title"].startswith("[critical] 13 alerts")
    assert pages.contact_state(down).state == "ready"
    assert pages.waiting_messages() == []


def test_a_message_is_resent_unchanged_if_the_response_was_lost(settings: Settings) -> None:
    mailbox = SilentMailbox()
    with running_mail_server(mailbox) as port:
        pages = Pages(settings, port)
        alice = pages.person("alice")
        pages.page([pages.alert("First", severity=1)], alice)
        mailbox.lost = 2
        pages.run_for(2)
        # The second page is more severe, so it does not wait.
        pages.page([pages.alert("Second")], alice)
        pages.run_for(60)
        pages.close()
    ids = [each["Message-ID"] for each in mailbox.messages]
    assert [subject.split(" (")[0] for subject in subjects(mailbox)] == [
        *["[high] First"] * 3,
        "[critical] Second",
    ]
    assert len(set(ids)) == 2
    assert ids[0] == ids[1] == ids[2]


def test_a_message_that_was_rejected_joins_later_ones(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert("First", severity=1)], alice)
    mailbox.data_answers.append("451 later")
    pages.run_for(2)
    pages.page([pages.alert("Second")], alice)
    pages.run_for(60)
    found = [
        str(each["Subject"]) for each in mailbox.messages if each["To"] == "alice@pager.example"
    ]
    assert found == ["[critical] 2 alerts in acme/shop: Second and others"]


@pytest.mark.long
def test_a_new_page_retries_a_failing_channel_immediately(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert()], alice)
    for _ in range(20):
        pages.wait(seconds=60)
        pages.run(mail_url=AWAY)
    pages.page([pages.alert()], alice)
    pages.run_for(9)
    assert subjects(mailbox) == ["[critical] 2 alerts in acme/shop: Disk full and others"]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_an_undeliverable_page_is_recorded_with_one_notice(pages: Pages, mailbox: Mailbox) -> None:
    pages.person("maria", role=Role.MAINTAINER)
    alice = pages.person("alice")
    alerts = pages.alerts(3)
    pages.page(alerts, alice)
    pages.wait(seconds=3)
    pages.run(mail_url=AWAY)
    pages.wait(seconds=GIVE_UP_AFTER.total_seconds())
    pages.run(mail_url=AWAY)
    for alert in alerts:
        (first, last) = pages.activity(alert)
        assert (first[:2], last[:2]) == (("page", "alice"), ("page", "alice"))
        reason = "the mail server is unavailable"
        assert first[2].startswith(f"was not reached: email failed ({reason}")
        assert last[2].startswith(f"was not paged by email: {reason}")
        assert "pager.example" not in first[2] + last[2]
    assert pages.waiting_messages() == []
    pages.page([pages.alert()], alice)
    pages.run_for(60, mail_url=AWAY)
    pages.wait(seconds=GIVE_UP_AFTER.total_seconds())
    pages.run(mail_url=AWAY)
    (notice,) = pages.rows(Mail)
    assert notice.recipient == "maria@accounts.example"
    assert notice.subject == "Pages of acme/shop were not sent"
    assert mailbox.messages == []


@pytest.mark.long
def test_a_permanently_rejected_address_is_not_retried(pages: Pages, mailbox: Mailbox) -> None:
    alice, alert = pages.person("alice"), pages.alert()
    pages.page([alert], alice)
    mailbox.recipient_answers.append("550 5.1.1 no such user")
    pages.run_for(60)
    # The contact is skipped, and the page goes to the account's address.
    assert mailbox.recipients == [["alice@accounts.example"]]
    ((_, _, text),) = pages.activity(alert)
    assert text == "was not paged by email: recipient rejected (550). No further attempt is made."
    assert alice.contact is not None
    # Users who can see the contact can also see the server's text.
    error = pages.contact_state(alice.contact).last_error
    assert error == "recipient rejected (550): 550 5.1.1 no such user"


@pytest.mark.long
def test_an_administrator_can_resend_an_undeliverable_page(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert("Still there")], alice)
    mailbox.recipient_answers += ["550 no", "550 no"]
    pages.run_for(5)
    with pages.session() as session:
        state = get_message_queue_state(session=session, now=pages.now)
        given_up = state.given_up[0]
        assert (given_up.owner, given_up.tries) == ("alice", 1)
        assert requeue_message(work_in(session, now=pages.now), given_up.id)
        assert not requeue_message(work_in(session, now=pages.now), given_up.id)
    pages.run_for(5)
    assert subjects(mailbox) == ["[critical] Still there (acme/shop #1)"]


@pytest.mark.long
def test_an_address_under_a_lost_key_is_reported(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    with pages.session() as session:
        session.execute(update(Contact).values(address_ciphertext="nothing that a key opens"))
    pages.page([pages.alert()], alice)
    pages.run_for(5)
    assert mailbox.recipients == [["alice@accounts.example"]]
    assert alice.contact is not None
    error = pages.contact_state(alice.contact).last_error
    assert error is not None
    assert "SECRET_KEY that is no longer known" in error


def test_without_a_mail_server_the_contact_shows_the_reason(pages: Pages) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert()], alice)
    pages.run_for(5, mail_url="")
    assert alice.contact is not None
    error = pages.contact_state(alice.contact).last_error
    assert error == "email is not configured: MAIL_URL is not set"


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_slow_channels_do_not_delay_others(
    pages: Pages, mailbox: Mailbox, receiver: Receiver
) -> None:
    """Use three dozen channels of one unresponsive service, and one healthy contact."""
    go_on = Event()

    def silently(_request: Received) -> tuple[int, Mapping[str, str]]:
        go_on.wait(60)
        return 200, {}

    receiver.answer = silently
    slow = [pages.person(f"slow{number}", has_contact=False) for number in range(12)]
    for person in slow:
        for number in range(3):
            apprise(pages, person, receiver.port, label=str(number))
    quick = pages.person("quick")
    pages.page([pages.alert()], *slow)
    pages.wait(seconds=1)
    pages.page([pages.alert()], quick)
    pages.wait(seconds=3)
    worker = pages.worker()
    with Scheduler([worker], worker.settings, clock=worker.clock):
        end = monotonic() + 60
        while not mailbox.messages and monotonic() < end:
            sleep(0.02)
        assert receiver.received == []
        go_on.set()
    assert mailbox.recipients == [["quick@pager.example"]]


@pytest.mark.long
def test_two_workers_send_nothing_twice(pages: Pages, mailbox: Mailbox) -> None:
    people = [pages.person(f"person{number}") for number in range(20)]
    for person in people:
        pages.page([pages.alert()], person)
    pages.wait(seconds=3)
    with pages.worker() as one, pages.worker() as other:
        threads = [Thread(target=each.process_all_due_work) for each in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(each[0] for each in mailbox.recipients) == sorted(
        f"{person.username}@pager.example" for person in people
    )


def test_a_message_of_a_dead_worker_is_sent_by_another_worker(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert()], alice)
    pages.wait(seconds=3)
    pages.run(mail_url=f"smtp://127.0.0.1:{free_port()}")
    with pages.session() as session:  # Simulates a worker that died during the next attempt.
        until = pages.now + timedelta(seconds=30)
        values = {"claimed_until": until, "claim": Contact.claim + 1, "next_try_at": pages.now}
        session.execute(update(Contact).values(**values))
    pages.run()
    assert mailbox.messages == []
    pages.wait(seconds=31)
    pages.run()
    assert len(mailbox.messages) == 1
    assert [row.outcome for row in pages.rows(PageMessage)] == ["sent"]


@pytest.mark.long
def test_the_connection_to_the_mail_server_is_kept(pages: Pages, mailbox: Mailbox) -> None:
    for number in range(5):
        pages.page([pages.alert()], pages.person(f"person{number}"))
    with_one_lane = pages.rows(Contact)
    assert {row.lane for row in with_one_lane} == {"email"}
    pages.run_for(3)
    assert len(mailbox.messages) == 5
    # Maximum number of simultaneous connections to one service.
    assert mailbox.connections <= 4


@pytest.mark.long
def test_an_error_in_one_message_or_recipient_does_not_delay_others(
    pages: Pages, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, carol = (pages.person(name) for name in ("alice", "bob", "carol"))
    alert = pages.alert()
    pages.page([alert], alice, bob, carol)
    real_content, real_projects = build_page_content, find_visible_projects

    def content(contact: Contact, *given: Any, **more: Any) -> Any:
        if contact.user_id == alice.id:
            raise ZeroDivisionError
        return real_content(contact, *given, **more)

    def projects(user: User, *given: Any, **more: Any) -> Any:
        if user.id == bob.id:
            raise ZeroDivisionError
        return real_projects(user, *given, **more)

    monkeypatch.setattr("domain.paging.notifications.outbox.build_page_content", content)
    monkeypatch.setattr("domain.paging.notifications.send_checks.find_visible_projects", projects)
    pages.run_for(5)
    assert mailbox.recipients == [["carol@pager.example"]]
    assert alice.contact is not None
    error = pages.contact_state(alice.contact).last_error
    assert error == "an error of this service (ZeroDivisionError)"
    monkeypatch.undo()
    pages.run_for(70)
    assert sorted(mailbox.recipients) == [
        ["alice@accounts.example"],
        ["alice@pager.example"],
        ["bob@pager.example"],
        ["carol@pager.example"],
    ]


@pytest.mark.long
def test_addresses_are_encrypted_again_under_a_new_key(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    new = "a new key that only tests have, and everybody knows"
    with pages.session() as session:
        old = pages.settings.secret_key
        assert reencrypt_all_columns(Keyring(new, old), session=session)["contact_addresses"] == 1
    pages.page([pages.alert()], alice)
    pages.run_for(5, secret_key=new)
    assert len(mailbox.messages) == 1


def test_old_pages_are_pruned(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert()], alice)
    pages.run_for(5)
    pages.wait(days=100)
    retention = Retention(keep_deliveries=1, keep_for=timedelta(days=1))
    with pages.session() as session:
        removed = prune_expired_rows(
            retention, session=session, now=pages.now, commit_batch=session.flush
        )
    assert (removed["pages"], removed["page_messages"], removed["page_batches"]) == (1, 1, 1)
    assert len(mailbox.messages) == 1
