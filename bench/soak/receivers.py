"""The receivers of a soak: a mail server, a phone, and unreliable webhook receivers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from itertools import count
from threading import Event

import orjson
from aiosmtpd.smtp import SMTP, Envelope, Session

from bench.soak.ledger import ExpectedPages
from tests.support.mail.mail_server import Mailbox
from tests.support.service.message_receiver import Received, Receiver

#: Pattern for firing alerts in the subject or in the list of a message.
_FIRING_PATTERN = re.compile(r"^\[\w+\] [^\n]*?(Page \d+ of the soak)", re.MULTILINE)
#: Number of requests of which one is rejected, and of which one is answered very late.
REQUESTS_PER_REJECTION, REQUESTS_PER_LATE_RESPONSE = 60, 300
_LATE_RESPONSE_SECONDS = 20.0


def find_firing_titles(subject: str, text: str) -> set[str]:
    """Return the titles of the alerts that a message lists as firing."""
    return set(_FIRING_PATTERN.findall(f"{subject}\n{text}"))


@dataclass
class PagesMailbox(Mailbox):
    """A mail server that records who is paged for which alert, and stores nothing else."""

    pages: ExpectedPages = field(default_factory=ExpectedPages)
    others: int = 0

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Receive a message."""
        del server, session
        content = envelope.content
        given = content if isinstance(content, bytes) else b""
        parsed: EmailMessage = message_from_bytes(given, policy=policy.default)
        body = parsed.get_body(("plain",))
        titles = find_firing_titles(str(parsed["Subject"]), str(body.get_content()) if body else "")
        for address in envelope.rcpt_tos:
            if titles:
                self.pages.take(address.partition("@")[0], titles)
            else:
                self.others += 1
        return "250 OK"


@dataclass
class PhoneReceiver(Receiver):
    """A receiver of pages in the format of ntfy."""

    pages: ExpectedPages = field(default_factory=ExpectedPages)
    person: str = ""
    others: int = 0

    def note(self, request: Received) -> tuple[int, Mapping[str, str]]:
        """Receive a message."""
        said = orjson.loads(request.body)
        titles = find_firing_titles(str(said.get("title", "")), str(said.get("message", "")))
        if titles:
            self.pages.take(self.person, titles)
        else:
            self.others += 1
        return 200, {}


@dataclass
class UnreliableReceiver(Receiver):
    """A receiver of events that sometimes rejects requests, and sometimes responds very late."""

    taken: int = 0
    refused: int = 0
    late: int = 0
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _end: Event = field(default_factory=Event)

    def note(self, request: Received) -> tuple[int, Mapping[str, str]]:
        """Count a request without storing it."""
        del request
        number = next(self._numbers)
        if number % REQUESTS_PER_LATE_RESPONSE == 0:
            self.late += 1
            self._end.wait(_LATE_RESPONSE_SECONDS)
        elif number % REQUESTS_PER_REJECTION == 0:
            self.refused += 1
            return 503, {}
        self.taken += 1
        return 204, {}

    def end(self) -> None:
        """Stop waiting."""
        self._end.set()
