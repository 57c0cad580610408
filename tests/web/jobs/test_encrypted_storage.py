"""Tests that messages and destination URLs are encrypted at rest, after an upgrade as well."""

from datetime import timedelta

import pytest
from sqlalchemy import delete, select, text, update
from sqlalchemy.orm import Session

from domain.core.hosts import HostReport, record_host_report
from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import redact_secret_links
from domain.delivery.outgoing.destinations import ENCRYPTED_URL
from domain.housekeeping.secret_key_rotation import get_secret_key_rotation, reencrypt_all_columns
from models import Host, Mail, WebhookEndpoint
from tests.support.database.webhooks import Webhooks
from tests.support.mail.mail_outbox import Outbox, write
from tests.support.service.message_receiver import Receiver
from web.jobs.retention import encrypt_stored_secrets

_SECRET = "gbe-" + "s" * 40
_LINK = f"http://gatebell.example/users/password/{_SECRET}"
_TEXT = f"Hello,\n\nChoose a password:\n{_LINK}\n\nIt works for an hour."


def stored_rows(outbox: Outbox) -> str:
    """Return the whole content of the message table."""
    with outbox.engine.connect() as connection:
        return repr(connection.execute(text("SELECT * FROM mails")).all())


def stored_text(outbox: Outbox) -> str:
    (row,) = outbox.rows()
    return row.text


def queue_as_before(outbox: Outbox, *, tries: int = 0, is_waiting: bool = True) -> None:
    """Store a message as release 0.1.0 does."""
    write(outbox, text=_TEXT)
    values = {
        "text": _TEXT,
        "text_ciphertext": None,
        "send_at": None,
        "next_try_at": outbox.now if is_waiting else None,
        "tries": tries,
    }
    with Session(outbox.engine) as session, session.begin():
        session.execute(update(Mail).values(values))


def report_host(outbox: Outbox, revision: str) -> None:
    with Session(outbox.engine) as session, session.begin():
        session.execute(delete(Host))
        report = HostReport(
            name="web-2:8000 worker",
            key_fingerprints=("a",),
            revision=revision,
            clock_lead_ms=None,
            seen_at=outbox.now,
        )
        record_host_report(report, session=session)


def encrypt(outbox: Outbox) -> None:
    encrypt_stored_secrets(outbox.settings, clock=lambda: outbox.now)


@pytest.mark.both_databases
def test_a_message_is_encrypted_while_it_waits_and_loses_its_link_when_sent(outbox: Outbox) -> None:
    write(outbox, text=_TEXT)
    assert "Choose a password" not in stored_rows(outbox)
    assert stored_text(outbox) == _TEXT

    outbox.send()
    (message,) = outbox.mailbox.messages
    assert _LINK in message.text
    assert stored_text(outbox) == redact_secret_links(_TEXT)
    assert _SECRET not in stored_text(outbox)
    assert "Choose a password" in stored_text(outbox)


def test_the_link_of_an_undeliverable_message_is_removed(outbox: Outbox) -> None:
    write(outbox, text=_TEXT)
    outbox.mailbox.recipient_answers.append("550 no such user")
    outbox.send()
    assert _SECRET not in stored_text(outbox)
    (row,) = outbox.rows()
    assert (row.send_at, row.sent_at) == (None, None)


def test_a_message_under_a_lost_key_is_discarded_and_others_are_sent(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    write(outbox, key="lost")
    with Session(outbox.engine) as session, session.begin():
        session.execute(update(Mail).values(text_ciphertext=Keyring("another").encrypt("Lost")))
    write(outbox, key="found", text="Found")
    outbox.send()
    assert [each.text.strip() for each in outbox.mailbox.messages] == ["Found"]
    with Session(outbox.engine) as session:
        lost = session.scalars(select(Mail).where(Mail.key == "lost")).one()
        assert (lost.send_at, lost.last_error) == (
            None,
            "the text cannot be decrypted: SECRET_KEY was replaced",
        )
    assert "mail.failed" in [vars(each).get("event") for each in caplog.records]


@pytest.mark.both_databases
def test_a_message_of_the_previous_release_is_encrypted_and_sent(outbox: Outbox) -> None:
    queue_as_before(outbox)
    report_host(outbox, "0103")
    encrypt(outbox)
    assert _SECRET not in stored_rows(outbox)
    outbox.send()
    assert [_LINK in each.text for each in outbox.mailbox.messages] == [True]


@pytest.mark.both_databases
def test_a_message_that_an_older_worker_can_be_sending_is_not_changed(outbox: Outbox) -> None:
    queue_as_before(outbox, tries=1)
    report_host(outbox, "0103")
    encrypt(outbox)
    outbox.send()
    assert (outbox.mailbox.messages, _SECRET in stored_rows(outbox)) == ([], True)
    outbox.now += timedelta(minutes=4)  # The older host is gone.
    encrypt(outbox)
    assert _SECRET not in stored_rows(outbox)
    outbox.send()
    assert len(outbox.mailbox.messages) == 1


def test_links_are_removed_from_sent_messages_of_the_previous_release(outbox: Outbox) -> None:
    queue_as_before(outbox, tries=1, is_waiting=False)
    encrypt(outbox)
    assert _SECRET not in stored_rows(outbox)
    assert stored_text(outbox) == redact_secret_links(_TEXT)
    outbox.send()
    assert outbox.mailbox.messages == []


def test_messages_are_encrypted_under_a_new_key(outbox: Outbox) -> None:
    write(outbox, text=_TEXT)
    both = Keyring("the key of tomorrow, which is long", outbox.settings.secret_key)
    with Session(outbox.engine) as session, session.begin():
        before = get_secret_key_rotation(both, session=session, now=outbox.now).encrypted[
            "messages"
        ]
        done = reencrypt_all_columns(both, session=session)["messages"]
        after = get_secret_key_rotation(both, session=session, now=outbox.now).encrypted["messages"]
        ciphertext = session.scalars(select(Mail.text_ciphertext)).one() or ""
    assert (before, done, after) == (1, 1, 0)
    assert both.is_encrypted_with_newest_key(ciphertext)
    assert both.decrypt(ciphertext) == _TEXT


@pytest.mark.both_databases
def test_the_url_of_a_webhook_is_encrypted_and_still_shown_and_sent_to(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    url = f"{receiver.url}?key={_SECRET}"
    made = webhooks.create_webhook(url).destination
    with webhooks.open_session() as session:
        stored = repr(session.execute(text("SELECT * FROM webhook_endpoints")).all())
    assert _SECRET not in stored
    assert webhooks.read_webhook_state(made).url == url
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    assert [each.path.partition("?")[2] for each in receiver.received] == [f"key={_SECRET}"]


@pytest.mark.both_databases
def test_urls_of_the_previous_release_are_encrypted_once_no_older_host_is_present(
    webhooks: Webhooks, outbox: Outbox
) -> None:
    url = f"http://127.0.0.1:1/?key={_SECRET}"
    made = webhooks.create_webhook("http://127.0.0.1:1/").destination
    with webhooks.open_session() as session:
        session.execute(update(WebhookEndpoint).values(url=url, url_ciphertext=None))
    assert webhooks.read_webhook_state(made).url == url
    outbox.now = webhooks.now
    report_host(outbox, "0103")
    encrypt(outbox)
    with webhooks.open_session() as session:
        assert session.scalars(select(WebhookEndpoint.url)).one() == url
    outbox.now += timedelta(minutes=4)
    encrypt(outbox)
    with webhooks.open_session() as session:
        assert session.scalars(select(WebhookEndpoint.url)).one() == ENCRYPTED_URL
    assert webhooks.read_webhook_state(made).url == url
    assert webhooks.read_webhook_state(made).redacted_url == "http://127.0.0.1:1/"
