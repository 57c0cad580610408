"""Tests of pages to browsers, through a push service on loopback that decrypts them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from domain.core.keyring import Keyring
from domain.housekeeping.secret_key_rotation import reencrypt_all_columns
from domain.paging.contacts.devices import find_device_identities, renew_device
from domain.paging.notifications.acknowledgement_links import parse_signed_link
from domain.paging.notifications.contact_types.device import build_device_address
from domain.paging.notifications.contacts import Contact, ContactOwner
from domain.paging.notifications.message_content import MessageContent
from domain.paging.notifications.push_requests import serialize_notification
from domain.paging.notifications.push_subscriptions import parse_push_subscription
from domain.paging.notifications.recipients import (
    PagingPreferences,
    QuietHours,
    store_preferences,
)
from models import ContactRule, Mail, PushKey
from tests.support.database.work import work_in
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.paging import Pages, Person, subjects
from tests.support.notifications.push_service import (
    Device,
    PushService,
    expires_within_a_day,
    running_push_service,
)
from tests.support.service.message_receiver import Received
from web.settings.environment import Settings


@pytest.fixture
def push_service(tmp_path: Path) -> Iterator[PushService]:
    with running_push_service(tmp_path) as running:
        yield running


@pytest.fixture
def pages(settings: Settings, mailbox: Mailbox, push_service: PushService) -> Iterator[Pages]:
    trusting = replace(
        settings,
        trusted_ca_file=push_service.certificate,
        mail_from="ops@gate.example",
    )
    with running_mail_server(mailbox) as port:
        made = Pages(trusting, port)
        yield made
        made.close()


def turn_on(pages: Pages, person: Person, device: Device) -> Contact:
    address = build_device_address(parse_push_subscription(device.subscription))
    return pages.contact(ContactOwner(user_id=person.id), address, label=device.name)


def test_a_page_reaches_every_device_encrypted_and_signed(
    pages: Pages, push_service: PushService
) -> None:
    alice = pages.person("alice", has_contact=False)
    phone, laptop = push_service.device("phone"), push_service.device("laptop")
    turn_on(pages, alice, phone)
    turn_on(pages, alice, laptop)
    alert = pages.alert("Disk full", service="billing", hosts="db1\ndb2")
    pages.page([alert], alice)
    pages.run_for(2)
    (push,), (other,) = phone.pushes, laptop.pushes
    assert (push.payload["title"], push.payload["body"]) == (
        "Critical: Disk full",
        "acme/shop #1\nbilling\ndb1, db2",
    )
    assert push.payload["url"] == f"{pages.settings.base_url}/acme/shop/-/alerts/1"
    assert other.payload["title"] == push.payload["title"]
    assert push.headers["urgency"] == "high"
    assert int(push.headers["ttl"]) > 0
    assert push.headers["topic"] == push.payload["tag"]
    assert push.token.claims["sub"] == "mailto:ops@gate.example"
    assert expires_within_a_day(push.token, pages.now)
    assert push.token.public_key == other.token.public_key
    # Links that act are only in the encrypted part.
    sealed = push.payload["acknowledge"].rpartition("/-/acknowledge/")[2]
    link = parse_signed_link(sealed, [pages.settings.secret_key], now=pages.now)
    assert link.user_id == alice.id
    assert push.payload["subject"] == str(alert)
    # Several people may use the same browser.
    assert push.payload["tag"] != other.payload["tag"]
    assert all(sealed not in value for value in push.headers.values())


def test_an_update_replaces_the_notification_of_its_alert(
    pages: Pages, push_service: PushService
) -> None:
    alice, bob = pages.person("alice", has_contact=False), pages.person("bob")
    phone = push_service.device("phone")
    turn_on(pages, alice, phone)
    alert = pages.alert("Disk full")
    pages.page([alert], alice)
    pages.run_for(2)
    pages.set_status([alert], "acknowledged", by=bob)
    pages.run_for(60)
    first, update_of_it = phone.pushes
    assert update_of_it.payload["title"] == "Acknowledged by @bob: Disk full"
    assert update_of_it.headers["topic"] == first.headers["topic"]
    assert update_of_it.payload["tag"] == first.payload["tag"]
    assert not update_of_it.payload["acknowledge"]


def test_several_alerts_are_one_notification_that_opens_the_acknowledgement_page(
    pages: Pages, push_service: PushService
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    turn_on(pages, alice, phone)
    pages.page(pages.alerts(3), alice)
    pages.run_for(2)
    (push,) = phone.pushes
    assert push.payload["body"].startswith("3 alerts in acme/shop")
    assert "/-/acknowledge/" in push.payload["url"]
    assert not push.payload["acknowledge"]


@pytest.mark.parametrize("status", [404, 410])
def test_a_device_that_ended_its_subscription_expires_and_other_contacts_are_used(
    pages: Pages, push_service: PushService, mailbox: Mailbox, status: int
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    contact = turn_on(pages, alice, phone)
    push_service.receiver.answer = lambda _request: (status, {})
    alert = pages.alert("Disk full")
    pages.page([alert], alice)
    pages.run_for(5)
    assert pages.contact_state(contact).state == "expired"
    assert mailbox.recipients == [["alice@accounts.example"]]
    assert subjects(mailbox)[0].startswith("[critical] Disk full")
    assert any("“phone”: the browser has ended" in text for _, _, text in pages.activity(alert))
    mails = [row for row in pages.rows(Mail) if row.recipient == "alice@accounts.example"]
    assert [each.subject for each in mails] == ["phone receives no more notifications"]
    assert "You have no other contact." in mails[0].text
    # Later pages do not try the device again.
    asked: list[str] = []

    def refuse(request: Received) -> tuple[int, dict[str, str]]:
        asked.append(request.path)
        return status, {}

    push_service.receiver.answer = refuse
    pages.page([pages.alert("Another")], alice)
    pages.run_for(60)
    assert asked == []
    assert len(mailbox.messages) == 2


def renew(pages: Pages, person: Person, device: Device) -> None:
    """Replace the subscription of a user's only device, as its browser does."""
    with pages.session() as session:
        found = find_device_identities(person.id, session=session, keyring=pages.keyring)
        (identity,) = found.values()
        work = work_in(session, now=pages.now, policies=[pages.keyring])
        own = replace(work, settings=pages.settings)
        renew_device(own, identity.token, device.subscription)


def test_a_device_that_is_renewed_during_an_attempt_does_not_expire(
    pages: Pages, push_service: PushService
) -> None:
    alice, (old, new) = (
        pages.person("alice", has_contact=False),
        map(push_service.device, ("old", "new")),
    )
    contact = turn_on(pages, alice, old)

    def answer(request: Received) -> tuple[int, dict[str, str]]:
        if request.path != old.path:
            return 201, {}
        renew(pages, alice, new)
        return 410, {}

    push_service.receiver.answer = answer
    pages.page([pages.alert("Disk full")], alice)
    pages.run_for(5)
    assert pages.contact_state(contact).state == "ready"
    assert [each.payload["title"] for each in new.pushes] == ["Critical: Disk full"]
    assert pages.rows(Mail) == []


def test_queued_messages_do_not_wait_for_the_next_attempt_at_the_old_address(
    pages: Pages, push_service: PushService
) -> None:
    alice, old = pages.person("alice", has_contact=False), push_service.device("old")
    contact = turn_on(pages, alice, old)
    push_service.receiver.answer = lambda _request: (503, {"Retry-After": "300"})
    pages.page([pages.alert("Disk full")], alice)
    pages.run_for(2)
    push_service.receiver.answer = lambda _request: (201, {})
    new = push_service.device("new")
    renew(pages, alice, new)
    pages.run_for(2)
    assert [each.payload["title"] for each in new.pushes] == ["Critical: Disk full"]
    assert pages.contact_state(contact).last_error is None


def test_delayed_messages_of_an_expired_device_go_to_the_account_without_another_attempt(
    pages: Pages, push_service: PushService, mailbox: Mailbox
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    contact = turn_on(pages, alice, phone)
    with pages.session() as session:
        later = {"alerts": "other", "delay_minutes": 5, "created_at": pages.now}
        now = {"alerts": "critical", "delay_minutes": 0, "created_at": pages.now}
        owner = {"user_id": alice.id, "contact_id": contact.id}
        session.add_all([ContactRule(**owner, **later), ContactRule(**owner, **now)])
    asked: list[str] = []

    def end(request: Received) -> tuple[int, dict[str, str]]:
        asked.append(request.path)
        return 410, {}

    push_service.receiver.answer = end
    pages.page([pages.alert("Delayed", severity=2)], alice)
    pages.run_for(40)
    pages.page([pages.alert("Now")], alice, is_critical=True)
    pages.run_for(40)
    assert [each.partition(" (")[0] for each in subjects(mailbox)] == ["[critical] Now"]
    pages.run_for(240)
    assert len(asked) == 1
    assert [each.partition(" (")[0] for each in subjects(mailbox)] == [
        "[critical] Now",
        "[medium] Delayed",
    ]
    assert len(pages.rows(Mail)) == 1


def test_an_ended_subscription_does_not_slow_down_other_devices_of_its_push_service(
    pages: Pages, push_service: PushService
) -> None:
    devices = [push_service.device(f"device{number}") for number in range(3)]
    people = [pages.person(device.name, has_contact=False) for device in devices]
    turn_on(pages, people[0], devices[0])
    push_service.receiver.answer = lambda request: (
        (410, {}) if request.path == devices[0].path else (201, {})
    )
    pages.page([pages.alert("Before")], people[0])
    worker = pages.worker()
    pages.wait(seconds=5)
    worker.process_all_due_work()
    for person, device in zip(people[1:], devices[1:], strict=True):
        turn_on(pages, person, device)
    pages.page([pages.alert("After")], *people[1:])
    pages.wait(seconds=5)
    assert worker.process_due_work() == 4  # two recipients and two devices
    worker.finish_current_run()


def test_only_contact_hosts_allow_private_push_services(
    pages: Pages, push_service: PushService
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    contact = turn_on(pages, alice, phone)
    pages.page([pages.alert("Disk full")], alice)
    pages.run_for(2, outgoing_contact_hosts="", outgoing_private_addresses="127.0.0.0/8")
    assert phone.pushes == []
    reason = "127.0.0.1 is a loopback address; only OUTGOING_CONTACT_HOSTS can allow this"
    assert pages.contact_state(contact).last_error == reason


def test_a_busy_push_service_is_asked_again_after_the_time_it_states(
    pages: Pages, push_service: PushService
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    contact = turn_on(pages, alice, phone)
    push_service.receiver.answer = lambda _request: (503, {"Retry-After": "60"})
    pages.page([pages.alert("Disk full")], alice)
    pages.run_for(2)
    assert pages.contact_state(contact).state == "failing"
    push_service.receiver.answer = lambda _request: (201, {})
    pages.run_for(55)
    assert phone.pushes == []
    pages.run_for(10)
    assert [each.payload["title"] for each in phone.pushes] == ["Critical: Disk full"]
    assert pages.contact_state(contact).state == "ready"


def test_quiet_hours_delay_notifications(pages: Pages, push_service: PushService) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    turn_on(pages, alice, phone)
    minute = pages.now.hour * 60 + pages.now.minute
    quiet = QuietHours(
        time_zone="UTC", starts=minute - 1, ends=minute + 2, lets_critical_through=True
    )
    with pages.session() as session:
        wanted = PagingPreferences(quiet_hours=quiet, wants_follow_ups=True)
        store_preferences(alice.id, wanted, session=session, now=pages.now)
    pages.page([pages.alert("Disk full", severity=1)], alice)
    pages.run_for(60)
    assert phone.pushes == []
    pages.run_for(70)
    assert [each.payload["title"] for each in phone.pushes] == ["High: Disk full"]


def test_a_long_title_is_truncated_to_the_size_of_a_push_message(
    pages: Pages, push_service: PushService
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    turn_on(pages, alice, phone)
    alert = pages.alert("\U0001f525" * 200, service="\U0001f525" * 100, hosts="\U0001f525" * 1000)
    pages.page([alert], alice)
    pages.run_for(2)
    (push,) = phone.pushes
    assert push.size <= 4096
    assert push.payload["title"].startswith("Critical: \U0001f525")
    assert push.payload["acknowledge"]


@pytest.mark.one_database("sqlite")
def test_only_the_last_mark_of_a_signature_ends_a_text() -> None:
    text = "Disk full\n\n-- \nSent by cron\n\n-- \nGatebell\n"
    _, payload = serialize_notification(MessageContent(subject="Notice", text=text), 7)
    assert json.loads(payload)["body"] == "Disk full\n\n-- \nSent by cron"


@pytest.mark.one_database("sqlite")
def test_long_texts_of_other_messages_are_truncated_too() -> None:
    for subject, text in (("Notice", "\U0001f525" * 5000), ("\U0001f525" * 5000, "")):
        topic, payload = serialize_notification(MessageContent(subject=subject, text=text), 7)
        assert len(payload) <= 3993
        shown = json.loads(payload)
        assert (shown["tag"], topic) == ("message-7", "message-7")
        assert f"{shown['title']}{shown['body']}".endswith("…")


def test_the_key_of_the_instance_survives_a_rotation_of_secret_key(
    pages: Pages, push_service: PushService
) -> None:
    alice, phone = pages.person("alice", has_contact=False), push_service.device("phone")
    turn_on(pages, alice, phone)
    pages.page([pages.alert("Before")], alice)
    pages.run_for(2)
    new = "a new key that only tests have, and everybody knows"
    with pages.session() as session:
        done = reencrypt_all_columns(Keyring(new, pages.settings.secret_key), session=session)
    assert (done["push_keys"], done["contact_addresses"]) == (1, 1)
    pages.wait(minutes=5)
    pages.page([pages.alert("After")], alice)
    pages.run_for(2, secret_key=new)
    first, second = phone.pushes
    assert second.payload["title"] == "Critical: After"
    assert second.token.public_key == first.token.public_key
    assert len(pages.rows(PushKey)) == 1
