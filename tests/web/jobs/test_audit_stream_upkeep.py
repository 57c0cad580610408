"""Tests of audit stream maintenance: notices, key changes, pruning and deleted accounts."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from domain.accounts.personal_data.erasure import erase_person
from domain.accounts.users import NewUser, UserView, create_user
from domain.audit.events import Event, EventActor, EventKind, EventSource
from domain.audit.seals import get_or_create_audit_key
from domain.audit.streamed_events import queue_streamed_event
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.housekeeping.secret_key_rotation import reencrypt_all_columns
from models import AuditStream, AuditStreamEntry, Mail
from tests.support.database.audit_streams import Streams
from tests.support.database.work import work_in
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.service.message_receiver import Receiver
from tests.support.sign_in.password_rules import RULES
from web.jobs.mail import queue_destination_failure_mail
from web.jobs.retention import prune_database
from web.settings.environment import Settings

DOWN = "http://127.0.0.1:1/in?key=of-the-collector"
OLD_KEY, NEW_KEY = "the key of yesterday, which is long", "the key of tomorrow, which is long"


@pytest.fixture
def streams(settings: Settings) -> Iterator[Streams]:
    made = Streams(replace(settings, secret_key=OLD_KEY))
    yield made
    made.stop_workers()


def person(streams: Streams, username: str, *, admin: bool = False) -> UserView:
    new = NewUser(
        username=username,
        email=f"{username}@people.example",
        name=username.capitalize(),
        password="a-pass-phrase-of-words",
        is_admin=admin,
    )
    with streams.open_session() as session:
        return create_user(new, session=session, now=streams.now, rules=RULES)


def mails(streams: Streams) -> list[Mail]:
    with streams.open_session() as session:
        return list_stored_mails(session, streams.settings.secret_key)


def test_administrators_are_notified_once_of_a_failing_destination(streams: Streams) -> None:
    person(streams, "root", admin=True)
    person(streams, "alice")
    streams.create_destination(DOWN)
    streams.write_events(2)
    streams.deliver_events()
    written = []
    for _ in range(6):
        streams.advance_time(hours=12)
        written.append(queue_destination_failure_mail(streams.settings, clock=lambda: streams.now))
    assert written == [0, 1, 0, 0, 0, 0]
    (message,) = mails(streams)
    assert message.recipient == "root@people.example"
    assert message.subject == "Audit events cannot be delivered"
    assert "the connection was refused" in message.text
    assert "Waiting events: 2." in message.text
    assert "/admin/audit_streams/" in message.text
    # The query can contain a secret of the destination.
    assert "of-the-collector" not in message.text


@pytest.mark.long
def test_old_entries_are_pruned_and_administrators_are_notified(streams: Streams) -> None:
    person(streams, "root", admin=True)
    stream, removed = (
        streams.create_destination(DOWN).destination,
        streams.create_destination(DOWN).destination,
    )
    streams.advance_time(days=-20)
    streams.write_events(2)
    streams.advance_time(days=20)
    streams.write_events()
    with streams.open_session() as session:
        AUDIT_STREAM_KIND.delete_destination(removed.id, session=session)
    assert prune_database(streams.settings)["audit_stream_entries"] == 5
    assert prune_database(streams.settings)["audit_stream_entries"] == 0
    state = streams.read_stream_state(stream)
    assert (state.backlog, state.dropped) == (1, 2)
    assert queue_destination_failure_mail(streams.settings, clock=lambda: streams.now) == 1
    (message,) = mails(streams)
    assert message.subject == "Audit events were discarded"
    assert "2 so far" in message.text


def test_an_event_that_was_pruned_before_it_was_sent_is_counted(
    streams: Streams, receiver: Receiver
) -> None:
    stream = streams.create_destination(receiver.url).destination
    streams.write_events()
    with streams.open_session() as session:
        session.execute(update(AuditStreamEntry).values(event_id=999_999))
    kept = streams.write_events()
    streams.deliver_events()
    assert receiver.subjects == kept
    assert streams.read_stream_state(stream).dropped == 1


def test_secrets_survive_a_change_of_the_secret_key(streams: Streams, receiver: Receiver) -> None:
    made = streams.create_destination(receiver.url)
    with streams.open_session() as session:
        done = reencrypt_all_columns(Keyring(NEW_KEY, OLD_KEY), session=session)
        assert (done["audit_stream_secrets"], done["previous_audit_stream_secrets"]) == (1, 0)
    streams.write_events()
    streams.deliver_events(secret_key=NEW_KEY)
    assert receiver.received[0].verified_by(made.secret)
    with streams.open_session() as session:
        ciphertext = session.scalars(select(AuditStream.secret_ciphertext)).one()
    assert made.secret not in ciphertext


def test_waiting_events_do_not_name_a_deleted_user(streams: Streams, receiver: Receiver) -> None:
    streams.create_destination(receiver.url)
    alice = person(streams, "alice")
    with streams.open_session() as session:
        actor = EventActor(id=alice.id, name=alice.username)
        source = EventSource(actor=actor, address="192.0.2.7", user_agent="Lynx/2.9")
        clone = Event(
            kind=EventKind.PUBLIC_REPOSITORY_DOWNLOADED, user_id=alice.id, subject="alice/shop"
        )
        queue_streamed_event(clone, source, session=session, now=streams.now)
    with streams.open_session() as session:
        key = get_or_create_audit_key(session=session, keyring=streams.keyring, now=streams.now)
        erase_person(work_in(session, now=streams.now), alice, heir=None, audit_key=key)
    streams.deliver_events()
    (sent,) = receiver.of("public_repository_download_operation")
    for trace in (b"alice", b"Alice", b"192.0.2.7", b"Lynx"):
        assert trace not in sent.body
    assert f"deleted user {alice.id}" in sent.body.decode()


def test_an_event_is_queued_once_for_each_destination(streams: Streams) -> None:
    made = [streams.create_destination(DOWN).destination.id for _ in range(3)]
    streams.write_events()
    with streams.open_session() as session:
        rows = session.scalars(select(AuditStreamEntry)).all()
    assert sorted(row.stream_id for row in rows) == made
    assert len({row.event_id for row in rows}) == 1
    assert len({row.message_id for row in rows}) == 3
    assert {row.created_at for row in rows} == {streams.now}
