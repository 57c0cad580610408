"""A real mail server for tests: it keeps messages, and rejects them as a test configures."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Literal

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.service.ports import free_port


class ReceivedEmail(EmailMessage):
    """A received message, with a text part and an HTML part."""

    @property
    def text(self) -> str:
        return self._read_part("plain")

    @property
    def html(self) -> str:
        return self._read_part("html")

    def _read_part(self, kind: Literal["plain", "html"]) -> str:
        part = self.get_body((kind,))
        assert part is not None
        content = part.get_content()
        assert isinstance(content, str)
        return content


_POLICY = policy.default.clone(message_factory=ReceivedEmail)


@dataclass
class Mailbox:
    """Received messages, and responses to clients."""

    messages: list[ReceivedEmail] = field(default_factory=list)
    senders: list[str] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    #: Responses to the next messages, such as `451 later`; then messages are accepted.
    recipient_answers: list[str] = field(default_factory=list)
    data_answers: list[str] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    #: Number of connections that sent a greeting.
    connections: int = 0

    async def handle_EHLO(  # noqa: N802 - aiosmtpd's name
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        del server, envelope
        session.host_name = hostname
        self.connections += 1
        return responses

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's names
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        if self.recipient_answers:
            return self.recipient_answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        del server, session
        if self.data_answers:
            return self.data_answers.pop(0)
        content = envelope.content
        assert isinstance(content, bytes)
        parsed: Any = message_from_bytes(content, policy=_POLICY)
        self.messages.append(parsed)
        self.senders.append(envelope.mail_from or "")
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"

    def check(self, server: SMTP, session: Session, *given: Any) -> AuthResult:
        """Accept and store any user and password."""
        del server, session
        credentials = given[-1]
        assert isinstance(credentials, LoginPassword)
        self.logins.append((credentials.login, credentials.password))
        return AuthResult(success=True)


@contextmanager
def running_mail_server(mailbox: Mailbox, **options: Any) -> Iterator[int]:
    """Run a server during the block and yield its port."""
    port = free_port()
    controller = Controller(mailbox, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()
