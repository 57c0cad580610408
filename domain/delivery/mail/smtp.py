"""Delivers emails to a mail server (RFC 5321), over TLS unless the server is on this machine."""

import smtplib
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email import policy
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, Self

from domain.core.tls import build_outgoing_tls_context, find_tls_failure_reason
from domain.delivery.mail.html_part import build_html_part
from domain.delivery.mail.outbox import ClaimedEmail

#: Timeout for connections and commands in seconds.
_TIMEOUT_SECONDS = 15.0
#: First digit of reply codes for permanent errors.
_PERMANENT_CODE_CLASS = 5
_OK_CODE = 250
_MAX_REPLY_LENGTH = 200


class MailError(Exception):
    """Error for a message that was not accepted.

    The text of the error contains no address and no secret.
    """

    def __init__(self, message: str, *, reply: str = "") -> None:
        """Store the error message, and the server's reply, which may contain an email address."""
        super().__init__(message)
        self.reply = reply


class TemporaryMailError(MailError):
    """Error for a message that was not accepted, but may be accepted later."""


class MailServerUnavailableError(TemporaryMailError):
    """Error for an unavailable mail server, which cannot deliver other messages either."""


class UnconfirmedDeliveryError(MailServerUnavailableError):
    """Error for a connection that closed before the server confirmed a message.

    The message may have arrived.
    """


class PermanentMailError(MailError):
    """Error for a message that was rejected permanently, so it is not retried."""


@dataclass(frozen=True, kw_only=True)
class MailServer:
    """A mail server and the credentials for it."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    #: True if TLS is used from the first byte (RFC 8314). Otherwise, STARTTLS is used (RFC 3207).
    has_implicit_tls: bool = False
    #: PEM file with certificate authorities that are trusted in addition to the system's.
    trusted_ca_file: Path | None = None

    @property
    def is_local(self) -> bool:
        """True if the server is reached over the loopback interface."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


@dataclass(frozen=True, kw_only=True)
class SenderAddress:
    """The name and the address from which all messages are sent."""

    name: str
    address: str


class _Connection(smtplib.SMTP):
    """An SMTP connection that records whether the text of a message is being sent."""

    is_in_data = False

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Send the text of a message, and return the server's reply."""
        self.is_in_data = True
        answer = super().data(msg)
        self.is_in_data = False
        return answer


class _TlsConnection(_Connection, smtplib.SMTP_SSL):
    """An SMTP connection with TLS from the first byte."""


class Mailer:
    """An SMTP client that connects for the first message and keeps the connection open."""

    def __init__(
        self,
        server: MailServer,
        sender: SenderAddress,
        *,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Store the server and the sender, without connecting yet.

        The timeout applies to connecting and to each command.
        """
        self._server = server
        self._sender = sender
        self._timeout_seconds = timeout_seconds
        self._connection: _Connection | None = None
        self._last: _Connection | None = None

    def __enter__(self) -> Self:
        """Return the mailer, without connecting yet."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connection with QUIT."""
        self.close()

    def close(self) -> None:
        """Close the connection with QUIT.

        The next message opens a new connection.
        """
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.quit()
        except (smtplib.SMTPException, OSError):
            connection.close()

    def abort_sending(self) -> None:
        """Abort a call to `send_message` in another thread, which then raises an error."""
        connection = self._connection
        sock = getattr(connection, "sock", None)
        if isinstance(sock, socket):
            with suppress(OSError):
                sock.shutdown(SHUT_RDWR)

    def check_connection(self) -> None:
        """Connect and log in.

        Raise MailServerUnavailableError if that fails.
        """
        try:
            self._open_connection()
        except (smtplib.SMTPException, OSError) as error:
            self.close()
            raise MailServerUnavailableError(_describe_error(error)) from None

    def send_message(self, message: ClaimedEmail, *, now: datetime) -> None:
        """Deliver a message.

        Raise TemporaryMailError, PermanentMailError or MailServerUnavailableError if that fails.
        Raise UnconfirmedDeliveryError if the message may have arrived.
        """
        email = compose_email(message, self._sender, now=now)
        self._last = None
        try:
            connection = self._last = self._open_connection()
            connection.is_in_data = False
            connection.send_message(email)
        except smtplib.SMTPRecipientsRefused as error:
            code, reply = max(error.recipients.values(), default=(0, b""))
            raise _build_reply_error("recipient rejected", code, reply) from None
        except (smtplib.SMTPDataError, smtplib.SMTPNotSupportedError) as error:
            self.close()
            code, reply = getattr(error, "smtp_code", 550), getattr(error, "smtp_error", b"")
            raise _build_reply_error("message rejected", code, reply) from None
        except (smtplib.SMTPException, OSError) as error:
            self.close()
            kind = UnconfirmedDeliveryError if self.may_have_arrived else MailServerUnavailableError
            raise kind(_describe_error(error)) from None

    @property
    def may_have_arrived(self) -> bool:
        """True if the last failed message may have arrived completely."""
        return self._last is not None and self._last.is_in_data

    def _open_connection(self) -> _Connection:
        if self._connection is not None and not _is_alive(self._connection):
            self.close()
        if self._connection is None:
            self._connection = _connect_and_log_in(self._server, self._timeout_seconds)
        return self._connection


def _is_alive(connection: _Connection) -> bool:
    """Return whether the server still responds on an open connection."""
    try:
        return connection.noop()[0] == _OK_CODE
    except (smtplib.SMTPException, OSError):
        return False


def _connect_and_log_in(server: MailServer, timeout_seconds: float) -> _Connection:
    """Connect to the mail server, log in, and return the connection.

    The password is never sent over a network without TLS.
    """
    if server.has_implicit_tls:
        connection: _Connection = _TlsConnection(
            server.host,
            server.port,
            timeout=timeout_seconds,
            context=build_outgoing_tls_context(server.trusted_ca_file),
        )
    else:
        connection = _Connection(server.host, server.port, timeout=timeout_seconds)
    try:
        _secure_and_log_in(connection, server)
    except BaseException:
        connection.close()
        raise
    return connection


def _secure_and_log_in(connection: smtplib.SMTP, server: MailServer) -> None:
    connection.ehlo_or_helo_if_needed()
    is_private = server.has_implicit_tls or server.is_local
    if not is_private and connection.has_extn("starttls"):
        connection.starttls(context=build_outgoing_tls_context(server.trusted_ca_file))
        connection.ehlo()
        is_private = True
    if not server.user:
        return
    if not is_private:
        # An attacker on the network path may have removed the server's offer of STARTTLS.
        email = "the mail server does not support TLS, so the password was not sent"
        raise smtplib.SMTPException(email)
    connection.login(server.user, server.password)


def _build_reply_error(what: str, code: int, reply: bytes | str) -> MailError:
    """Return the permanent (5yz) or temporary (4yz) error for a reply (RFC 5321 section 4.2.1)."""
    is_final = code // 100 == _PERMANENT_CODE_CLASS
    error = PermanentMailError if is_final else TemporaryMailError
    words = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return error(f"{what} ({code})", reply=f"{code} {_join_lines(words)}"[:_MAX_REPLY_LENGTH])


def _describe_error(error: Exception) -> str:
    """Describe an error without the server's text, which may repeat credentials or addresses."""
    code = getattr(error, "smtp_code", None)
    if isinstance(error, smtplib.SMTPResponseException) and code is not None:
        return f"{type(error).__name__} ({code})"
    if type(error) is smtplib.SMTPException:
        return str(error)  # The text was written by this module, not by the server.
    if reason := find_tls_failure_reason(error):
        return f"the TLS connection to the mail server failed: {reason}"
    return type(error).__name__


def compose_email(message: ClaimedEmail, sender: SenderAddress, *, now: datetime) -> EmailMessage:
    """Return the email to send.

    Raise PermanentMailError for a malformed recipient address.
    """
    email = EmailMessage(policy=policy.SMTP)
    try:
        to = Address(addr_spec=message.recipient)
        email["From"] = Address(display_name=_join_lines(sender.name), addr_spec=sender.address)
        email["To"] = to
    except (ValueError, MessageError, IndexError):
        raise PermanentMailError("the recipient address is not valid") from None
    email["Subject"] = _join_lines(message.subject)
    email["Date"] = format_datetime(now)
    # The ID is the same for each attempt, so that mail clients recognize duplicates after a crash.
    name = sha256(f"{message.id} {message.key}".encode()).hexdigest()[:32]
    email["Message-ID"] = f"<{name}@{_get_domain(sender.address)}>"
    # Suppress automatic replies (RFC 3834 section 5).
    email["Auto-Submitted"] = "auto-generated"
    if message.thread:
        # Mail clients group messages with the same reference, even if no message has this ID.
        thread = sha256(message.thread.encode()).hexdigest()[:32]
        email["References"] = f"<{thread}@{_get_domain(sender.address)}>"
    email.set_content(message.text)
    html = build_html_part(_join_lines(message.subject), message.text, message.buttons)
    email.add_alternative(html, subtype="html")
    return email


def _get_domain(address: str) -> str:
    """Return the domain of an email address."""
    return address.rpartition("@")[2]


def _join_lines(text: str) -> str:
    """Join the lines of a string, since a line break would end a header (RFC 5322 section 2.2)."""
    spaced = (
        " " if unicodedata.category(character)[0] in "CZ" else character for character in text
    )
    return " ".join("".join(spaced).split())
