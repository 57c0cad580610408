"""Groups pages into messages and sends them in threads of the background worker.

One worker at a time serves each recipient and each contact (`domain/paging/notifications/`).
`process_all_due_work` sends each message that is due at a given time once.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from time import monotonic
from typing import NamedTuple

from joserfc.jwk import ECKey
from sqlalchemy import or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import Clock, read_system_clock
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_fraction
from domain.delivery.mail.outbox import ClaimedEmail
from domain.delivery.mail.smtp import (
    Mailer,
    MailError,
    MailServerUnavailableError,
    PermanentMailError,
    UnconfirmedDeliveryError,
)
from domain.delivery.outgoing.deadlines import run_with_deadline
from domain.delivery.outgoing.errors import DeadlineExceededError, OutgoingError
from domain.delivery.outgoing.ip_address_policy import AddressPolicy
from domain.delivery.queue import Claim
from domain.incidents.paging import find_incident_page_reasons as reasons_of_incidents
from domain.paging.escalations.page_holds import find_page_holds
from domain.paging.escalations.reporting.explanation import find_page_reasons
from domain.paging.notifications.batching import (
    RECIPIENTS_ARE_DUE,
    RECIPIENTS_ARE_DUE_SOON,
    batch_due_pages,
)
from domain.paging.notifications.contact_types.base import ContactMessage, ContactType, SendProblem
from domain.paging.notifications.contacts import list_types_in_use
from domain.paging.notifications.message_content import MessageContent
from domain.paging.notifications.message_queue import CONTACT_QUEUE
from domain.paging.notifications.outbox import (
    CONTACTS_ARE_DUE,
    UnusableAddressError,
    find_due_contacts,
    record_failed_attempt,
    record_message_sent,
    take_next_message,
)
from domain.paging.notifications.page_subjects import SubjectKind
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.notifications.push_requests import (
    build_push_request,
    find_push_problem,
    get_or_create_push_key,
    serialize_notification,
)
from domain.paging.notifications.push_subscriptions import PushSubscription
from models import Contact
from web.jobs.queue_jobs import QueueJob
from web.outgoing.apprise_processes import AppriseProcesses
from web.outgoing.client import OutgoingClient
from web.outgoing.mail_server import build_mail_server, build_sender
from web.settings.environment import Settings
from web.settings.policies.alerts import build_parser_settings
from web.settings.stored_settings import read_current_settings

#: Maximum numbers of messages in progress: in total, per lane, and in all slow or failing lanes.
MAX_MESSAGES_IN_PROGRESS = 32
_MAX_PER_LANE = 4
_MAX_IN_BAD_LANES = 16
#: Time limit of an attempt, in seconds. It covers connecting, TLS, sending and the response.
ATTEMPT_TIMEOUT_SECONDS = 15.0
_COMMAND_TIMEOUT_SECONDS = 10.0
_log = logging.getLogger("gatebell.pages")
#: Pause between attempts to record a sent message while the database is unavailable, in seconds.
_RECORD_RETRY_SECONDS = 0.2
#: Duration in seconds above which a service counts as slow.
_SLOW_SERVICE_SECONDS = 5.0
#: Number of due contacts that are read. It exceeds `MAX_MESSAGES_IN_PROGRESS`, because some lanes
#: may be full.
_MAX_DUE_CONTACTS_READ = 4 * MAX_MESSAGES_IN_PROGRESS


class LaneSlots:
    """Slots of a worker for messages in progress, by lane.

    A lane contains all contacts whose messages go to the same service.
    """

    def __init__(self) -> None:
        """Start with all slots free and no lane marked as failing or slow."""
        self._taken: Counter[str] = Counter()
        self._bad: set[str] = set()
        self._lock = Lock()

    @property
    def free_slots(self) -> int:
        """Number of free slots for messages."""
        return MAX_MESSAGES_IN_PROGRESS - self._taken.total()

    @property
    def full_lanes(self) -> list[str]:
        """Lanes in which no further message may be sent now."""
        with self._lock:
            return [each for each in {*self._taken, *self._bad} if not self._has_free_slot(each)]

    def acquire_slot(self, lane: str) -> bool:
        """Take a slot in a lane and return True, or return False if no slot is free."""
        with self._lock:
            has_place = self.free_slots > 0 and self._has_free_slot(lane)
            if has_place:
                self._taken[lane] += 1
            return has_place

    def release_slot(self, lane: str, *, did_well: bool | None = None) -> None:
        """Free a slot, and record whether the lane's service works.

        `did_well` is None if no message was sent. A lane whose last message failed or was slow gets
        fewer slots.
        """
        with self._lock:
            self._taken[lane] -= 1
            if self._taken[lane] <= 0:
                del self._taken[lane]
            if did_well is not None:
                (self._bad.discard if did_well else self._bad.add)(lane)

    def _has_free_slot(self, lane: str) -> bool:
        if lane not in self._bad:
            return self._taken[lane] < _MAX_PER_LANE
        taken = sum(count for each, count in self._taken.items() if each in self._bad)
        return self._taken[lane] < 1 and taken < _MAX_IN_BAD_LANES


class PageSenders:
    """Thread-safe senders that a worker uses for pages."""

    def __init__(
        self, settings: Settings, *, clock: Clock, read_push_key: Callable[[], ECKey]
    ) -> None:
        """Store the settings from the environment without opening any connection."""
        self.apprise = AppriseProcesses(settings)
        self._read_push_key = read_push_key
        self._settings = settings
        self._clock = clock
        self._idle: list[tuple[Settings, Mailer]] = []
        self._lock = Lock()

    def send_message(self, delivery: ContactMessage, settings: Settings) -> SendProblem | None:
        """Send a message with the given settings and return the problem, or None if it was sent."""
        return delivery.type.send_message(delivery, _PageTransports(self, settings))

    def prepare_contact_types(self, types: Iterable[ContactType]) -> None:
        """Start the processes that the given contact types will need."""
        for each in types:
            each.prepare_sending(_PageTransports(self, self._settings))

    def close_connections(self) -> None:
        """Close all open connections and processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, mailer in idle:
            mailer.close()
        self.apprise.end_children()

    def send_via_apprise(self, url: str, content: MessageContent) -> SendProblem | None:
        """Send a message through Apprise and return the problem, or None if it was sent."""
        return self.apprise.send_message(
            url,
            content.subject,
            content.text,
            short_body=content.short_text or content.text,
            is_alarm=content.is_alarm,
            deadline=ATTEMPT_TIMEOUT_SECONDS,
        )

    def send_mail(self, message: ClaimedEmail, settings: Settings) -> SendProblem | None:
        """Send an email and return the problem, or None if it was sent."""
        if not settings.mail_url:
            reason = "email is not configured: MAIL_URL is not set"
            return SendProblem(reason, is_of_all_mail=True)
        mailer = self._take_mailer(settings)
        now = self._clock()
        try:
            run_with_deadline(
                ATTEMPT_TIMEOUT_SECONDS,
                lambda: mailer.send_message(message, now=now),
                stop=mailer.abort_sending,
            )
        except DeadlineExceededError:
            reason = f"the mail server did not answer within {ATTEMPT_TIMEOUT_SECONDS:.0f} s"
            arrived = mailer.may_have_arrived
            return SendProblem(reason, is_of_all_mail=True, may_have_arrived=arrived)
        except MailError as error:
            self._return_mailer(settings, mailer)
            return _build_mail_problem(error)
        self._return_mailer(settings, mailer)
        return None

    def send_push(
        self,
        subscription: PushSubscription,
        content: MessageContent,
        attempt_id: int,
        settings: Settings,
    ) -> SendProblem | None:
        """Send a notification to the push service of a browser.

        Return the problem, or None if the service accepted the notification.
        """
        topic, payload = serialize_notification(content, attempt_id)
        request = build_push_request(
            subscription,
            payload,
            topic=topic,
            key=self._read_push_key(),
            contact_url=_build_contact_url(settings),
            now=self._clock(),
        )
        policy = AddressPolicy.from_contact_hosts(settings.outgoing_contact_hosts)
        client = OutgoingClient.from_settings(settings, policy)
        try:
            answer = client.send_post(subscription.url, request.body, request.headers)
        except OutgoingError as error:
            may_have_arrived = isinstance(error, DeadlineExceededError)
            return SendProblem(str(error), may_have_arrived=may_have_arrived)
        finally:
            client.close_connection()
        return find_push_problem(answer.status, answer.retry_after)

    def _take_mailer(self, settings: Settings) -> Mailer:
        """Return a mailer that no other thread uses, with an open connection if possible."""
        with self._lock, suppress(IndexError):
            made_for, mailer = self._idle.pop()
            if made_for == settings:
                return mailer
            mailer.close()
        server = build_mail_server(settings.mail_url, settings.trusted_ca_file)
        return Mailer(server, build_sender(settings), timeout_seconds=_COMMAND_TIMEOUT_SECONDS)

    def _return_mailer(self, settings: Settings, mailer: Mailer) -> None:
        with self._lock:
            self._idle.append((settings, mailer))


def _build_contact_url(settings: Settings) -> str:
    """Return the URL at which push service operators can reach this instance's operator."""
    return f"mailto:{settings.mail_from}" if settings.mail_from else settings.base_url


def _build_mail_problem(error: MailError) -> SendProblem:
    if isinstance(error, MailServerUnavailableError):
        reason = f"the mail server is unavailable ({error})"
        may_have_arrived = isinstance(error, UnconfirmedDeliveryError)
        return SendProblem(reason, is_of_all_mail=True, may_have_arrived=may_have_arrived)
    return SendProblem(str(error), error.reply, is_final=isinstance(error, PermanentMailError))


class _PageTransports(NamedTuple):
    """Transports for messages under the current settings."""

    senders: PageSenders
    settings: Settings

    def send_mail(self, message: ClaimedEmail) -> SendProblem | None:
        """Send an email and return the problem, or None if it was sent."""
        return self.senders.send_mail(message, self.settings)

    def send_via_apprise(self, url: str, content: MessageContent) -> SendProblem | None:
        """Send a message through Apprise."""
        return self.senders.send_via_apprise(url, content)

    def send_push(
        self, subscription: PushSubscription, content: MessageContent, attempt_id: int
    ) -> SendProblem | None:
        """Send a notification to a browser.

        Return the problem, or None if the push service accepted the notification.
        """
        return self.senders.send_push(subscription, content, attempt_id, self.settings)

    def prepare_apprise(self) -> None:
        """Start an Apprise process if none is running."""
        self.senders.apprise.start_child()


def process_all_due_work(settings: Settings, clock: Clock) -> None:
    """Group and send all pages that are due at the clock's time."""
    with PagingJob(settings, clock=clock) as paging:
        paging.process_all_due_work()


class PagingJob(QueueJob):
    """Job that groups due pages into messages and sends the messages in threads."""

    name = "pages"
    due = or_(RECIPIENTS_ARE_DUE_SOON, CONTACTS_ARE_DUE)
    pause_seconds = 0.0
    #: Number of database connections. No connection is held while a message is being sent.
    connections = 4
    attempt_seconds = ATTEMPT_TIMEOUT_SECONDS

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = read_system_clock,
        share: Callable[[], float] = generate_random_fraction,
    ) -> None:
        """Store the settings and the clock.

        `share` returns a random fraction that varies the retry pauses.
        """
        super().__init__(settings, clock=clock, share=share)
        self._lanes = LaneSlots()
        self._senders = PageSenders(settings, clock=clock, read_push_key=self._read_push_key)

    def finish_current_run(self) -> None:
        """Let messages in progress finish, and leave the other messages to the next worker."""
        super().finish_current_run()
        self._senders.close_connections()

    def queue_messages(self) -> int:
        """Group due pages into messages, and return the number of recipients."""
        if not self.is_due(RECIPIENTS_ARE_DUE_SOON):
            return 0
        with Session(self.reading_engine) as session:
            # Start processes now, so that they are ready when the pages are sent.
            self._senders.prepare_contact_types(list_types_in_use(session=session))
        if not self.is_due(RECIPIENTS_ARE_DUE):
            return 0
        with Session(self.engine) as session, session.begin():
            policy = build_paging_settings(read_current_settings(self.settings, session=session))
            return batch_due_pages(policy, session=session, now=self.clock())

    def claim_destinations(self) -> Sequence[Callable[[], None]]:
        """Claim contacts for which slots are free, and return functions that send to them."""
        if self._lanes.free_slots <= 0 or not self.is_due(CONTACTS_ARE_DUE):
            return []
        with Session(self.reading_engine) as session:
            found = find_due_contacts(
                except_lanes=self._lanes.full_lanes,
                limit=_MAX_DUE_CONTACTS_READ,
                session=session,
                now=self.clock(),
            )
        lanes = {contact_id: lane for contact_id, lane in found if self._lanes.acquire_slot(lane)}
        if not lanes:
            return []
        senders: dict[int, Callable[[], None]] = {}
        contacts = select(Contact.id).where(Contact.id.in_(lanes))
        try:
            with Session(self.engine) as session, session.begin():
                settings = read_current_settings(self.settings, session=session)
                claims = CONTACT_QUEUE.claim_destinations(
                    contacts, session=session, now=self.clock()
                )
            for claim in claims:
                lane = lanes[claim.destination_id]
                send = partial(self._send_contact_messages, claim, lane, settings)
                senders[claim.destination_id] = send
        finally:
            for contact_id in lanes.keys() - senders.keys():
                self._lanes.release_slot(lanes[contact_id])
        return [*senders.values()]

    def _send_contact_messages(self, claim: Claim, lane: str, settings: Settings) -> None:
        """Send a contact's queued messages until no message is left or an attempt fails."""
        did_well: bool | None = None
        try:
            did_well = self._send_queued_messages(claim, settings)
        except SQLAlchemyError as error:  # the claim expires, and another attempt follows
            said = _build_log_fields(claim, reason=type(error).__name__)
            _log.warning(
                "Page delivery was interrupted because the database was unavailable.",
                extra={"event": "page.interrupted", **said},
            )
        except Exception as error:  # noqa: BLE001 - otherwise the error would be raised in every attempt
            _log.exception(
                "Page delivery failed because of an unexpected error; the worker will retry.",
                extra={"event": "page.unexpected_error", **_build_log_fields(claim)},
            )
            problem = SendProblem(f"an error of this service ({type(error).__name__})")
            with suppress(SQLAlchemyError):
                self._record_send_failure(claim, problem, settings)
        finally:
            self._lanes.release_slot(lane, did_well=did_well)
            self.notify_scheduler()  # a slot became free

    def _send_queued_messages(self, claim: Claim, settings: Settings) -> bool | None:
        """Send queued messages and return whether the last attempt succeeded quickly enough.

        Return None if nothing was sent.
        """
        did_well: bool | None = None
        while (delivery := self._get_next_message(claim, settings)) is not None:
            if self.is_stopped.is_set():
                self.run_in_transaction(
                    lambda session: CONTACT_QUEUE.release_claim(claim, session=session)
                )
                break
            began = monotonic()
            problem = self._senders.send_message(delivery, settings)
            # A push service that reports the end of a subscription is working.
            is_good = problem is None or problem.has_ended
            did_well = is_good and monotonic() - began < _SLOW_SERVICE_SECONDS
            if problem is not None:
                self._record_send_failure(claim, problem, settings, delivery)
                break
            self._record_message_sent(claim, delivery)
        return did_well

    def _get_next_message(self, claim: Claim, settings: Settings) -> ContactMessage | None:
        policy = build_paging_settings(settings)
        try:
            with Session(self.engine) as session, session.begin():
                return take_next_message(
                    claim, policy, session=session, keyring=self.keyring, now=self.clock()
                )
        except UnusableAddressError as error:
            self._record_send_failure(claim, error.problem, settings)
            return None

    def _record_message_sent(self, claim: Claim, delivery: ContactMessage) -> None:
        """Record a sent message, and retry while the database is unavailable.

        Without the record, the message would be sent again.
        """
        while True:
            try:
                self.run_in_transaction(
                    lambda session: record_message_sent(
                        claim, delivery, session=session, now=self.clock()
                    )
                )
                break
            except SQLAlchemyError:
                if self.is_stopped.wait(_RECORD_RETRY_SECONDS):
                    raise
        said = _build_log_fields(claim, messages=len(delivery.message_ids))
        _log.info("Page was sent.", extra={"event": "page.sent", **said})

    def _record_send_failure(
        self,
        claim: Claim,
        problem: SendProblem,
        settings: Settings,
        delivery: ContactMessage | None = None,
    ) -> None:
        policy, share = build_paging_settings(settings), self.share()
        with Session(self.engine) as session, session.begin():
            given_up = record_failed_attempt(
                claim,
                problem,
                policy,
                delivery=delivery,
                share=share,
                session=session,
                now=self.clock(),
            )
        said = _build_log_fields(claim, reason=problem.reason)
        if given_up:
            _log.error("Page delivery failed permanently.", extra={"event": "page.failed", **said})
        else:
            _log.warning(
                "Page delivery failed; the worker will retry.",
                extra={"event": "page.attempt_failed", **said},
            )

    def _read_push_key(self) -> ECKey:
        with Session(self.engine) as session, session.begin():
            return get_or_create_push_key(session=session, keyring=self.keyring, now=self.clock())


def build_paging_settings(settings: Settings) -> PagingSettings:
    """Return the settings and functions that the domain needs for paging."""
    return PagingSettings(
        base_url=settings.base_url,
        instance_name=settings.instance_name,
        sends_mail=bool(settings.mail_url),
        link_keys=(settings.secret_key, *settings.secret_key_fallbacks),
        keyring=Keyring(settings.secret_key, *settings.secret_key_fallbacks),
        reading=build_parser_settings(settings),
        reason_finders={
            SubjectKind.ALERT: find_page_reasons,
            SubjectKind.INCIDENT: reasons_of_incidents,
        },
        find_holds=find_page_holds,
    )


def _build_log_fields(claim: Claim, **more: object) -> dict[str, object]:
    return {"contact_id": claim.destination_id, **more}
