"""Sends a message to a contact, by the way that its type says."""

from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from domain.clock import Clock
from domain.mail.outbox import Message
from domain.mail.smtp import Mailer, MailError, MailServerUnavailableError, PermanentMailError
from domain.notifications.contacts import ContactType
from domain.notifications.outbox import Delivery
from web.jobs.mail import mail_server, sender_of
from web.outgoing.apprise_processes import AppriseProcesses
from web.outgoing.deadlines import run_within
from web.outgoing.errors import DeadlineError
from web.settings.reader import Settings

#: For a whole attempt: connection, TLS, sending and the answer.
ATTEMPT_SECONDS = 15.0
_COMMAND_SECONDS = 10.0


class Problem(NamedTuple):
    """Why a message was not sent."""

    #: Contains no address and no secret.
    reason: str
    #: The service's own words, for those who may see the contact.
    words: str = ""
    is_final: bool = False
    #: Whether no e-mail at all leaves, to whatever address.
    is_of_all_mail: bool = False


class PageSenders:
    """What a worker sends messages with; for any number of threads."""

    def __init__(self, settings: Settings, *, clock: Clock) -> None:
        """Take the settings of the environment; nothing is opened yet."""
        self._apprise = AppriseProcesses(settings)
        self._clock = clock
        self._idle: list[tuple[Settings, Mailer]] = []
        self._lock = Lock()

    def send(self, delivery: Delivery, settings: Settings) -> Problem | None:
        """Send a message with the settings in force; return what went wrong, or None."""
        if delivery.type is ContactType.EMAIL:
            return self._send_mail(delivery, settings)
        return self._send_by_apprise(delivery)

    def prepare(self) -> None:
        """Start what takes a moment, for messages that follow soon."""
        self._apprise.prepare()

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, mailer in idle:
            mailer.close()
        self._apprise.close()

    def _send_by_apprise(self, delivery: Delivery) -> Problem | None:
        content = delivery.content
        problem = self._apprise.send(
            delivery.address,
            content.subject,
            content.text,
            short_body=content.short_text or content.text,
            is_alarm=content.is_alarm,
            deadline=ATTEMPT_SECONDS,
        )
        return None if problem is None else Problem(problem.reason, problem.words)

    def _send_mail(self, delivery: Delivery, settings: Settings) -> Problem | None:
        if not settings.mail_url:
            reason = "e-mail is not configured: MAIL_URL is not set"
            return Problem(reason, is_of_all_mail=True)
        mailer = self._mailer(settings)
        now = self._clock()
        try:
            run_within(
                ATTEMPT_SECONDS,
                lambda: mailer.send(_message(delivery), now=now),
                stop=mailer.abort,
            )
        except DeadlineError:
            reason = f"the mail server did not answer within {ATTEMPT_SECONDS:.0f} s"
            return Problem(reason, is_of_all_mail=True)
        except MailError as error:
            self._keep(settings, mailer)
            return _problem_of(error)
        self._keep(settings, mailer)
        return None

    def _mailer(self, settings: Settings) -> Mailer:
        """Return a mailer that nobody else uses, with its connection if one is kept."""
        with self._lock, suppress(IndexError):
            made_for, mailer = self._idle.pop()
            if made_for == settings:
                return mailer
            mailer.close()
        server = mail_server(settings.mail_url, settings.trusted_ca_file)
        return Mailer(server, sender_of(settings), timeout_seconds=_COMMAND_SECONDS)

    def _keep(self, settings: Settings, mailer: Mailer) -> None:
        with self._lock:
            self._idle.append((settings, mailer))


def _problem_of(error: MailError) -> Problem:
    if isinstance(error, MailServerUnavailableError):
        reason = f"the mail server is unavailable ({error})"
        return Problem(reason, is_of_all_mail=True)
    return Problem(str(error), error.reply, is_final=isinstance(error, PermanentMailError))


def _message(delivery: Delivery) -> Message:
    first, last = delivery.message_ids[0], delivery.message_ids[-1]
    return Message(
        id=first,
        # The same at each attempt, so that clients recognize a duplicate after a crash.
        key=f"page {first} to {last}",
        recipient=delivery.address,
        subject=delivery.content.subject,
        text=delivery.content.text,
        created_at=delivery.created_at,
        tries=delivery.tries,
    )
