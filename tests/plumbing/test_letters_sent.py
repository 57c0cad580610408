"""Letters on their way: refused, delayed, encrypted, and never more than one letter each."""

import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from models import Mail
from tests.support.certificates import make_certificate
from tests.support.letter_office import Office, write
from tests.support.mail_server import Mailbox, closed_port, running_mail_server
from web.jobs.mail import mail_server
from web.settings.reader import Settings

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def office(settings: Settings) -> Iterator[Office]:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        opened = Office(settings, mailbox, port)
        yield opened
        opened.engine.dispose()


@pytest.mark.both_databases
def test_a_letter_that_was_refused_for_now_arrives_later(office: Office) -> None:
    office.token(office.person("alice"), days=5)
    office.write()
    office.mailbox.recipient_answers.append("451 greylisted, alice@people.example, come back")

    office.send()
    assert office.mailbox.letters == []
    (waiting,) = office.rows()
    # What a server says may hold the address: only its code is kept.
    assert waiting.last_error == "recipient refused (451)"
    office.send()
    assert office.mailbox.letters == []  # not before its pause is over
    office.now += timedelta(minutes=1)
    office.send()

    assert len(office.mailbox.letters) == 1
    (sent,) = office.rows()
    assert (sent.next_try_at, sent.sent_at, sent.tries) == (None, office.now, 2)


@pytest.mark.both_databases
def test_a_letter_that_is_refused_for_good_is_given_up_and_stops_no_other(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("alice", "bob"):
        office.token(office.person(name), days=5)
    office.write()
    office.mailbox.recipient_answers.append("550 no such user alice@people.example")

    with caplog.at_level("INFO", logger="gatebell.letters"):
        office.send()

    assert office.mailbox.recipients == [["bob@people.example"]]
    assert [row.next_try_at for row in office.rows()] == [None, None]
    assert "letter given up" in caplog.text
    ours = [each for each in caplog.records if each.name.startswith("gatebell")]
    given = [str(vars(record)) for record in ours]
    assert not any("people.example" in each for each in given)


def test_while_the_server_is_away_letters_wait_with_growing_pauses(office: Office) -> None:
    office.token(office.person("alice"), days=5)
    office.write()
    away = {"mail_url": f"smtp://127.0.0.1:{closed_port()}"}
    pauses = []
    for _ in range(9):
        office.send(**away)
        (row,) = office.rows()
        assert row.next_try_at is not None
        pauses.append(row.next_try_at - office.now)
        office.now = row.next_try_at

    assert [pause.total_seconds() / 60 for pause in pauses] == [1, 2, 4, 8, 16, 32, 64, 120, 120]
    office.send()
    assert len(office.mailbox.letters) == 1


def test_after_a_day_a_letter_is_given_up(office: Office) -> None:
    office.token(office.person("alice"), days=5)
    office.write()
    office.now += timedelta(hours=25)

    office.send(mail_url=f"smtp://127.0.0.1:{closed_port()}")
    (row,) = office.rows()
    assert (row.next_try_at, row.sent_at) == (None, None)
    assert row.last_error == "ConnectionRefusedError"
    office.send()
    assert office.mailbox.letters == []


@pytest.mark.both_databases
def test_a_letter_in_the_hands_of_a_worker_that_died_is_sent_by_another(office: Office) -> None:
    office.token(office.person("alice"), days=5)
    office.write()
    with Session(office.engine) as session, session.begin():
        taken = {"tries": 1, "next_try_at": office.now + timedelta(minutes=10)}
        session.execute(update(Mail).values(**taken))

    office.send()
    assert office.mailbox.letters == []
    office.now += timedelta(minutes=10)
    office.send()
    assert len(office.mailbox.letters) == 1


HOSTILE: tuple[dict[str, str], ...] = (
    {"subject": "Hi\r\nBcc: eve@evil.example\r\n\r\nOther text"},
    {"subject": "Hi\u2028Bcc: eve@evil.example"},
    {"subject": "Hi\x85Bcc: eve@evil.example\x0b\x0cX-Other: 1"},
    {"text": "Hello\r\n.\r\nMAIL FROM:<x@evil.example>\r\n.\nRCPT TO:<eve@evil.example>"},
)


def test_nothing_in_a_letter_becomes_a_header_or_another_letter(office: Office) -> None:
    for number, letter in enumerate(HOSTILE):
        write(office, key=f"k{number}", **letter)

    office.send()

    assert office.mailbox.recipients == [["alice@people.example"]] * len(HOSTILE)
    for taken in office.mailbox.letters:
        assert set(taken.keys()) == {
            *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"),
            *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
        }


def test_an_address_that_is_none_gets_nothing(office: Office) -> None:
    nowhere = (
        *("a@b.example\r\nBcc: eve@evil.example", "", "nobody"),
        *("a@b.example, c@d.example", "<>", "@"),
    )
    for number, recipient in enumerate(nowhere):
        write(office, key=f"k{number}", recipient=recipient)

    office.send()

    assert office.mailbox.letters == []
    assert [row.next_try_at for row in office.rows()] == [None] * len(nowhere)


def test_the_name_of_the_installation_cannot_become_a_header(office: Office) -> None:
    write(office)

    office.send(instance_name='Gate, "bell" <x@evil.example>')

    (taken,) = office.mailbox.letters
    assert taken["From"].addresses[0].addr_spec == "gatebell@localhost"
    assert office.mailbox.senders == ["gatebell@localhost"]


def test_user_and_password_are_given_to_a_server_on_this_machine(settings: Settings) -> None:
    mailbox = Mailbox()
    options: dict[str, Any] = {
        "authenticator": mailbox.check,
        "auth_require_tls": False,
    }
    with running_mail_server(mailbox, **options) as port:
        office = Office(settings, mailbox, port)
        write(office)
        office.send(mail_url=f"smtp://post%40a:p%3Ass@127.0.0.1:{port}")
        office.engine.dispose()

    assert mailbox.logins == [(b"post@a", b"p:ss")]
    assert len(mailbox.letters) == 1


def test_a_password_never_crosses_a_network_in_the_clear(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same server, taken for one on another machine.
    monkeypatch.setattr("domain.mail.smtp.MailServer.is_this_machine", False)
    write(office)
    port = office.settings.mail_url.rpartition(":")[2]

    office.send(mail_url=f"smtp://user:secret-password@127.0.0.1:{port}")

    (row,) = office.rows()
    assert row.last_error == "the mail server offers no encryption, so the password is not sent"
    assert office.mailbox.logins == []
    assert office.mailbox.letters == []


def test_a_mail_server_is_read_from_its_address() -> None:
    plain, encrypted = mail_server("smtp://mx.example"), mail_server("smtps://u:p@mx.example")
    assert (plain.port, plain.has_implicit_tls, plain.user) == (587, False, "")
    assert (encrypted.port, encrypted.has_implicit_tls, encrypted.password) == (465, True, "p")
    assert "secret" not in repr(mail_server("smtp://user:secret@mx.example"))


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that this process trusts."""
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
        office = Office(settings, mailbox, port)
        write(office)
        office.send(mail_url=f"smtps://127.0.0.1:{port}")
        office.engine.dispose()

    assert len(mailbox.letters) == 1


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_server_elsewhere_is_asked_to_encrypt_and_has_to_prove_who_it_is(
    settings: Settings,
    certificate: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_trusted: bool,
) -> None:
    monkeypatch.setattr("domain.mail.smtp.MailServer.is_this_machine", False)
    if not is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
    mailbox = Mailbox()
    options: dict[str, Any] = {"tls_context": certificate, "require_starttls": True}
    with running_mail_server(mailbox, **options) as port:
        office = Office(settings, mailbox, port)
        write(office)
        office.send(mail_url=f"smtp://127.0.0.1:{port}")
        (row,) = office.rows()
        office.engine.dispose()

    assert len(mailbox.letters) == int(is_trusted)
    assert row.last_error == (None if is_trusted else "SSLCertVerificationError")
