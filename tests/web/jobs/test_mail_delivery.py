"""Tests of email delivery: rejections, retries, encryption and protection against injection."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from models import Mail
from tests.support.alerts.monitoring import wait_until
from tests.support.mail.mail_outbox import Outbox, write
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.certificates import make_certificate, rsa_key, write_certificate
from tests.support.service.ports import free_port
from tests.support.service.tls_server import lax_context
from web.jobs.job_intervals import WorkerHeartbeatJob
from web.jobs.mail import MailJob
from web.jobs.scheduler import Scheduler
from web.outgoing.mail_server import build_mail_server
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.both_databases
def test_a_temporarily_rejected_message_is_sent_later(outbox: Outbox) -> None:
    outbox.token(outbox.person("alice"), days=5)
    outbox.write()
    outbox.mailbox.recipient_answers.append("451 greylisted, alice@people.example, come back")

    outbox.send()
    assert outbox.mailbox.messages == []
    (waiting,) = outbox.rows()
    # The server's text can contain the address, so only its code is stored.
    assert waiting.last_error == "recipient rejected (451)"
    outbox.send()
    assert outbox.mailbox.messages == []  # The retry is not due yet.
    outbox.now += timedelta(minutes=1)
    outbox.send()

    assert len(outbox.mailbox.messages) == 1
    (sent,) = outbox.rows()
    assert (sent.send_at, sent.sent_at, sent.tries) == (None, outbox.now, 2)


@pytest.mark.both_databases
def test_a_permanently_rejected_message_is_discarded_and_others_are_sent(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("alice", "bob"):
        outbox.token(outbox.person(name), days=5)
    outbox.write()
    outbox.mailbox.recipient_answers.append("550 no such user alice@people.example")

    with caplog.at_level("INFO", logger="gatebell.mail"):
        outbox.send()

    assert outbox.mailbox.recipients == [["bob@people.example"]]
    assert [row.send_at for row in outbox.rows()] == [None, None]
    ours = [each for each in caplog.records if each.name.startswith("gatebell")]
    assert "mail.failed" in [vars(record)["event"] for record in ours]
    given = [str(vars(record)) for record in ours]
    assert not any("people.example" in each for each in given)


def test_retries_back_off_while_the_server_is_unavailable(outbox: Outbox) -> None:
    outbox.token(outbox.person("alice"), days=5)
    outbox.write()
    away = {"mail_url": f"smtp://127.0.0.1:{free_port()}"}
    pauses = []
    for _ in range(9):
        outbox.send(**away)
        (row,) = outbox.rows()
        assert row.send_at is not None
        pauses.append(row.send_at - outbox.now)
        outbox.now = row.send_at

    assert [pause.total_seconds() / 60 for pause in pauses] == [1, 2, 4, 8, 16, 32, 64, 120, 120]
    outbox.send()
    assert len(outbox.mailbox.messages) == 1


def test_a_message_is_discarded_after_four_days(outbox: Outbox) -> None:
    outbox.token(outbox.person("alice"), days=5)
    outbox.write()
    outbox.now += timedelta(days=4, hours=1)

    outbox.send(mail_url=f"smtp://127.0.0.1:{free_port()}")
    (row,) = outbox.rows()
    assert (row.send_at, row.sent_at) == (None, None)
    assert row.last_error == "ConnectionRefusedError"
    outbox.send()
    assert outbox.mailbox.messages == []


@pytest.mark.both_databases
def test_a_message_claimed_by_a_dead_worker_is_sent_by_another_worker(outbox: Outbox) -> None:
    outbox.token(outbox.person("alice"), days=5)
    outbox.write()
    with Session(outbox.engine) as session, session.begin():
        taken = {"tries": 1, "send_at": outbox.now + timedelta(minutes=10)}
        session.execute(update(Mail).values(**taken))

    outbox.send()
    assert outbox.mailbox.messages == []
    outbox.now += timedelta(minutes=10)
    outbox.send()
    assert len(outbox.mailbox.messages) == 1


HOSTILE: tuple[dict[str, str], ...] = (
    {"subject": "Hi\r\nBcc: eve@evil.example\r\n\r\nOther text"},
    {"subject": "Hi\u2028Bcc: eve@evil.example"},
    {"subject": "Hi\x85Bcc: eve@evil.example\x0b\x0cX-Other: 1"},
    {"text": "Hello\r\n.\r\nMAIL FROM:<x@evil.example>\r\n.\nRCPT TO:<eve@evil.example>"},
)


def test_message_content_cannot_inject_headers_or_messages(outbox: Outbox) -> None:
    for number, message in enumerate(HOSTILE):
        write(outbox, key=f"k{number}", **message)

    outbox.send()

    assert outbox.mailbox.recipients == [["alice@people.example"]] * len(HOSTILE)
    for taken in outbox.mailbox.messages:
        assert set(taken.keys()) == {
            *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"),
            *("Content-Type", "MIME-Version"),
        }


def test_no_message_is_sent_to_an_invalid_address(outbox: Outbox) -> None:
    nowhere = (
        *("a@b.example\r\nBcc: eve@evil.example", "", "nobody"),
        *("a@b.example, c@d.example", "<>", "@"),
    )
    for number, recipient in enumerate(nowhere):
        write(outbox, key=f"k{number}", recipient=recipient)

    outbox.send()

    assert outbox.mailbox.messages == []
    assert [row.send_at for row in outbox.rows()] == [None] * len(nowhere)


def test_the_name_of_the_installation_cannot_become_a_header(outbox: Outbox) -> None:
    write(outbox)

    outbox.send(instance_name='Gate, "bell" <x@evil.example>')

    (taken,) = outbox.mailbox.messages
    assert taken["From"].addresses[0].addr_spec == "gatebell@localhost"
    assert outbox.mailbox.senders == ["gatebell@localhost"]


def test_credentials_are_sent_to_a_server_on_this_machine(settings: Settings) -> None:
    mailbox = Mailbox()
    options: dict[str, Any] = {
        "authenticator": mailbox.check,
        "auth_require_tls": False,
    }
    with running_mail_server(mailbox, **options) as port:
        outbox = Outbox(settings, mailbox, port)
        write(outbox)
        outbox.send(mail_url=f"smtp://post%40a:p%3Ass@127.0.0.1:{port}")
        outbox.engine.dispose()

    assert mailbox.logins == [(b"post@a", b"p:ss")]
    assert len(mailbox.messages) == 1


def test_a_password_is_not_sent_over_a_network_without_tls(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The code treats this server as one on another machine.
    monkeypatch.setattr("domain.delivery.mail.smtp.MailServer.is_local", False)
    write(outbox)
    port = outbox.settings.mail_url.rpartition(":")[2]

    outbox.send(mail_url=f"smtp://user:secret-password@127.0.0.1:{port}")

    (row,) = outbox.rows()
    assert row.last_error == "the mail server does not support TLS, so the password was not sent"
    assert outbox.mailbox.logins == []
    assert outbox.mailbox.messages == []


def test_a_mail_server_is_parsed_from_its_url() -> None:
    plain, encrypted = (
        build_mail_server("smtp://mx.example"),
        build_mail_server("smtps://u:p@mx.example"),
    )
    assert (plain.port, plain.has_implicit_tls, plain.user) == (587, False, "")
    assert (encrypted.port, encrypted.has_implicit_tls, encrypted.password) == (465, True, "p")
    assert "secret" not in repr(build_mail_server("smtp://user:secret@mx.example"))


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Create a certificate for 127.0.0.1 that this process trusts."""
    file = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


def test_smtps_is_encrypted_from_the_first_byte(
    settings: Settings, certificate: ssl.SSLContext
) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox, ssl_context=certificate) as port:
        outbox = Outbox(settings, mailbox, port)
        write(outbox)
        outbox.send(mail_url=f"smtps://127.0.0.1:{port}")
        outbox.engine.dispose()

    assert len(mailbox.messages) == 1


@pytest.mark.long
@pytest.mark.spec("L6")
def test_a_server_is_trusted_by_a_ca_file_and_rejected_with_a_weak_key(
    settings: Settings, tmp_path: Path
) -> None:
    reason: str | None = None
    for bits, sent in ((2048, 1), (1024, 0)):
        file = write_certificate(tmp_path / f"{bits}.pem", rsa_key(bits))
        mailbox = Mailbox()
        with running_mail_server(mailbox, ssl_context=lax_context(file)) as port:
            outbox = Outbox(settings, mailbox, port)
            write(outbox, key=f"k{bits}")
            outbox.send(mail_url=f"smtps://127.0.0.1:{port}", trusted_ca_file=file)
            reason = outbox.rows()[-1].last_error
            outbox.engine.dispose()
        assert len(mailbox.messages) == sent
    assert "the key of the certificate is too weak" in (reason or "")


UNTRUSTED = (
    "the TLS connection to the mail server failed: the certificate is self-signed and not in "
    "TRUSTED_CA_FILE"
)


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_remote_server_needs_starttls_and_a_trusted_certificate(
    settings: Settings,
    certificate: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_trusted: bool,
) -> None:
    monkeypatch.setattr("domain.delivery.mail.smtp.MailServer.is_local", False)
    if not is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
    mailbox = Mailbox()
    options: dict[str, Any] = {"tls_context": certificate, "require_starttls": True}
    with running_mail_server(mailbox, **options) as port:
        outbox = Outbox(settings, mailbox, port)
        write(outbox)
        outbox.send(mail_url=f"smtp://127.0.0.1:{port}")
        (row,) = outbox.rows()
        outbox.engine.dispose()

    assert len(mailbox.messages) == int(is_trusted)
    assert row.last_error == (None if is_trusted else UNTRUSTED)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_message_is_sent_immediately_unless_the_server_is_unavailable(outbox: Outbox) -> None:
    outbox.now = datetime.now(UTC)
    write(outbox, key="first")
    settings = outbox.settings
    with Scheduler([MailJob(settings)], settings):
        wait_until(lambda: len(outbox.mailbox.messages) == 1, "the first message leaves")
        write(outbox, key="second")
        wait_until(lambda: len(outbox.mailbox.messages) == 2, "the second message leaves")
    for number in range(5):
        write(outbox, key=f"later {number}")
    away = replace(settings, mail_url=f"smtp://127.0.0.1:{free_port()}")
    with Scheduler([MailJob(away)], away):
        wait_until(lambda: any(row.last_error for row in outbox.rows()), "the server is asked")
        sleep(1)
    assert sum(row.tries for row in outbox.rows() if row.sent_at is None) == 1


@pytest.mark.long
def test_waiting_messages_are_not_processed_without_a_mail_server(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.now = datetime.now(UTC)
    write(outbox)
    none = replace(outbox.settings, mail_url="")
    with Scheduler([MailJob(none), WorkerHeartbeatJob(none)], none):
        sleep(1)
    assert [row.tries for row in outbox.rows()] == [0]
    assert "job.failed" not in [vars(each).get("event") for each in caplog.records]
