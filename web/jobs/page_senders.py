"""Sends a message to a contact, by the way that its type says."""

from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from domain.clock import Clock
from domain.mail.outbox import Message
from domain.mail.smtp import Mailer, MailError, MailServerUnavailableError, PermanentMailError
from domain.notifications.contact_types.base import ContactType, Delivery, Problem
from domain.notifications.messages import Content
from domain.outgoing.deadlines import run_within
from domain.outgoing.errors import DeadlineError
from web.jobs.mail import mail_server, sender_of
from web.outgoing.apprise_processes import AppriseProcesses
from web.settings.reader import Settings

#: For a whole attempt: connection, TLS, sending and the answer.
ATTEMPT_SECONDS = 15.0
_COMMAND_SECONDS = 10.0


class PageSenders:
    """What a worker sends messages with; for any number of threads."""

    def __init__(self, settings: Settings, *, clock: Clock) -> None:
        """Take the settings of the environment; nothing is opened yet."""
        self.apprise = AppriseProcesses(settings)
        self._settings = settings
        self._clock = clock
        self._idle: list[tuple[Settings, Mailer]] = []
        self._lock = Lock()

    def send(self, delivery: Delivery, settings: Settings) -> Problem | None:
        """Send a message with the settings in force; return what went wrong, or None."""
        return delivery.type.send(delivery, _Means(self, settings))

    def prepare(self, types: Iterable[ContactType]) -> None:
        """Start what takes a moment, for messages that follow soon."""
        for each in types:
            each.prepare(_Means(self, self._settings))

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, mailer in idle:
            mailer.close()
        self.apprise.close()

    def send_by_apprise(self, url: str, content: Content) -> Problem | None:
        """Send a message through Apprise."""
        return self.apprise.send(
            url,
            content.subject,
            content.text,
            short_body=content.short_text or content.text,
            is_alarm=content.is_alarm,
            deadline=ATTEMPT_SECONDS,
        )

    def send_mail(self, message: Message, settings: Settings) -> Problem | None:
        """Send an e-mail."""
        if not settings.mail_url:
            reason = "e-mail is not configured: MAIL_URL is not set"
            return Problem(reason, is_of_all_mail=True)
        mailer = self._mailer(settings)
        now = self._clock()
        try:
            run_within(ATTEMPT_SECONDS, lambda: mailer.send(message, now=now), stop=mailer.abort)
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


class _Means(NamedTuple):
    """What messages are sent with while some settings are in force."""

    senders: PageSenders
    settings: Settings

    def send_mail(self, message: Message) -> Problem | None:
        """Send an e-mail."""
        return self.senders.send_mail(message, self.settings)

    def send_by_apprise(self, url: str, content: Content) -> Problem | None:
        """Send a message through Apprise."""
        return self.senders.send_by_apprise(url, content)

    def prepare_apprise(self) -> None:
        """Start a process of Apprise."""
        self.senders.apprise.prepare()
