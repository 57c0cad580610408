"""Hands letters to a mail server (RFC 5321), encrypted wherever they leave this machine."""

import smtplib
import ssl
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from email import policy
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256
from ipaddress import ip_address
from types import TracebackType
from typing import Self

from domain.mail.outbox import Letter

#: A server that takes longer to answer than so many seconds is taken for dead.
_PATIENCE_SECONDS = 15.0


class NotTakenError(Exception):
    """The letter was not taken now; its text names no address and no secret."""


class ServerAwayError(NotTakenError):
    """No letter can be handed in just now."""


class NeverTakenError(NotTakenError):
    """The letter will not be taken later either."""


@dataclass(frozen=True, kw_only=True)
class MailServer:
    """Where letters are handed in, and by whom."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    #: Encrypted from the first byte; else the server is asked to encrypt (RFC 3207).
    has_implicit_tls: bool = False

    @property
    def is_this_machine(self) -> bool:
        """Whether nothing crosses a network on the way there."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Who the letters come from."""

    name: str
    address: str


class Postman:
    """A connection to a mail server, opened for the first letter and kept for the others."""

    def __init__(self, server: MailServer, sender: Sender) -> None:
        """Remember where to go and who sends."""
        self._server = server
        self._sender = sender
        self._connection: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        """Open nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Say good-bye."""
        self._hang_up()

    def deliver(self, letter: Letter, *, now: datetime) -> None:
        """Hand in a letter; raise NotTakenError, or NeverTakenError if trying again is in vain."""
        message = compose(letter, self._sender, now=now)
        try:
            connection = self._open()
            connection.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            raise _refusal("recipient refused", max(codes, default=0)) from None
        except (smtplib.SMTPDataError, smtplib.SMTPNotSupportedError) as error:
            self._hang_up()
            code = getattr(error, "smtp_code", 550)
            raise _refusal("letter refused", code) from None
        except (smtplib.SMTPException, OSError) as error:
            self._hang_up()
            raise ServerAwayError(_words(error)) from None

    def _open(self) -> smtplib.SMTP:
        if self._connection is None:
            self._connection = _connect(self._server)
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.quit()
        except (smtplib.SMTPException, OSError):
            connection.close()


def _connect(server: MailServer) -> smtplib.SMTP:
    """Open a connection; a password never crosses a network in the clear."""
    if server.has_implicit_tls:
        connection: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host,
            server.port,
            timeout=_PATIENCE_SECONDS,
            context=ssl.create_default_context(),
        )
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=_PATIENCE_SECONDS)
    try:
        _prepare(connection, server)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: smtplib.SMTP, server: MailServer) -> None:
    connection.ehlo_or_helo_if_needed()
    is_private = server.has_implicit_tls or server.is_this_machine
    if not is_private and connection.has_extn("starttls"):
        connection.starttls(context=ssl.create_default_context())
        connection.ehlo()
        is_private = True
    if not server.user:
        return
    if not is_private:
        # Also what somebody on the way makes of a server that would encrypt.
        message = "the mail server offers no encryption, so the password is not sent"
        raise smtplib.SMTPException(message)
    connection.login(server.user, server.password)


def _refusal(what: str, code: int) -> NotTakenError:
    """Tell a refusal for good (5yz) from one for now (4yz); RFC 5321 section 4.2.1."""
    is_final = 500 <= code < 600  # noqa: PLR2004
    return (NeverTakenError if is_final else NotTakenError)(f"{what} ({code})")


def _words(error: Exception) -> str:
    """Return what went wrong without the server's own words: they may repeat what we sent."""
    code = getattr(error, "smtp_code", None)
    if isinstance(error, smtplib.SMTPResponseException) and code is not None:
        return f"{type(error).__name__} ({code})"
    if type(error) is smtplib.SMTPException:
        return str(error)  # our own sentence
    return type(error).__name__


def compose(letter: Letter, sender: Sender, *, now: datetime) -> EmailMessage:
    """Return the message; raise NeverTakenError for an address that none can be written to."""
    message = EmailMessage(policy=policy.SMTP)
    try:
        to = Address(addr_spec=letter.recipient)
        message["From"] = Address(display_name=_line(sender.name), addr_spec=sender.address)
        message["To"] = to
    except (ValueError, MessageError, IndexError):
        raise NeverTakenError("the address is none") from None
    message["Subject"] = _line(letter.subject)
    message["Date"] = format_datetime(now)
    # The same for each try: who gets a letter twice after a crash can tell that it is one.
    name = sha256(f"{letter.id} {letter.key}".encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{name}@{_domain(sender.address)}>"
    # RFC 3834: nobody is away for a machine.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.text)
    return message


def _domain(address: str) -> str:
    """Return what follows the at sign."""
    return address.rpartition("@")[2]


def _line(text: str) -> str:
    """Return a text on one line: a header ends where a line does (RFC 5322 section 2.2)."""
    spaced = (
        " " if unicodedata.category(character)[0] in "CZ" else character for character in text
    )
    return " ".join("".join(spaced).split())
