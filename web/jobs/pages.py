"""Gathers pages and sends them, in threads of the background worker.

Each recipient and each contact is served by one worker at a time
(`domain/paging/notifications/`).
`run_due` does once what is due at a moment.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic
from typing import NamedTuple

from sqlalchemy import or_
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import Clock, system_clock
from domain.core.keyring import Keyring
from domain.core.randomness import random_share
from domain.delivery.mail.outbox import Message
from domain.delivery.mail.smtp import (
    LostAnswerError,
    Mailer,
    MailError,
    MailServerUnavailableError,
    PermanentMailError,
)
from domain.delivery.outgoing.deadlines import run_within
from domain.delivery.outgoing.errors import DeadlineError
from domain.incidents.paging import page_reasons as reasons_of_incidents
from domain.paging.escalations.explanation import page_reasons
from domain.paging.escalations.page_holds import find_page_holds
from domain.paging.notifications.batching import (
    RECIPIENTS_ARE_DUE,
    RECIPIENTS_ARE_DUE_SOON,
    gather_due,
)
from domain.paging.notifications.contact_types.base import ContactType, Delivery, Problem
from domain.paging.notifications.contacts import types_in_use
from domain.paging.notifications.messages import Content
from domain.paging.notifications.outbox import (
    CONTACTS_ARE_DUE,
    Claim,
    LostAddressError,
    claim_contacts,
    find_due_lanes,
    next_delivery,
    record_failure,
    record_sent,
    release,
)
from domain.paging.notifications.page_targets import Subject
from domain.paging.notifications.policy import PagingPolicy
from web.jobs.scheduler import Job
from web.outgoing.apprise_processes import AppriseProcesses
from web.outgoing.mail_server import mail_server, sender_of
from web.settings.policies.alerts import reading
from web.settings.reader import Settings
from web.settings.stored import current_settings

#: Messages under way at once, those to one service, and those to services that do badly.
MOST_AT_ONCE = 32
_MOST_IN_LANE = 4
_MOST_IN_BAD_LANES = 16
#: For a whole attempt: connection, TLS, sending and the answer.
ATTEMPT_SECONDS = 15.0
_COMMAND_SECONDS = 10.0
_log = logging.getLogger("gatebell.pages")
#: Between attempts to note what was sent, while the database is unavailable.
_NOTING_SECONDS = 0.2
#: A service that takes longer counts as slow.
_SLOW_SECONDS = 5.0
#: More than may be under way, since some of them are of full lanes.
_LOOKED_AT = 4 * MOST_AT_ONCE


class Lanes:
    """The places that are taken, of one worker."""

    def __init__(self) -> None:
        """Begin with no place taken and every lane trusted."""
        self._taken: Counter[str] = Counter()
        self._bad: set[str] = set()
        self._lock = Lock()

    @property
    def free(self) -> int:
        """How many messages more may be under way."""
        return MOST_AT_ONCE - self._taken.total()

    @property
    def full(self) -> list[str]:
        """The lanes of which nothing more may be sent now."""
        with self._lock:
            return [each for each in {*self._taken, *self._bad} if not self._has_place(each)]

    def take(self, lane: str) -> bool:
        """Take a place, or return False if there is none."""
        with self._lock:
            has_place = self.free > 0 and self._has_place(lane)
            if has_place:
                self._taken[lane] += 1
            return has_place

    def leave(self, lane: str, *, did_well: bool | None = None) -> None:
        """Give a place back, and say how it went if something was sent."""
        with self._lock:
            self._taken[lane] -= 1
            if self._taken[lane] <= 0:
                del self._taken[lane]
            if did_well is not None:
                (self._bad.discard if did_well else self._bad.add)(lane)

    def _has_place(self, lane: str) -> bool:
        if lane not in self._bad:
            return self._taken[lane] < _MOST_IN_LANE
        taken = sum(count for each, count in self._taken.items() if each in self._bad)
        return self._taken[lane] < 1 and taken < _MOST_IN_BAD_LANES


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
            arrived = mailer.may_have_arrived
            return Problem(reason, is_of_all_mail=True, may_have_arrived=arrived)
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
        may_have_arrived = isinstance(error, LostAnswerError)
        return Problem(reason, is_of_all_mail=True, may_have_arrived=may_have_arrived)
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


def run_due(settings: Settings, clock: Clock) -> None:
    """Gather and send everything that is due at the present moment of a clock."""
    with Paging(settings, clock=clock) as paging:
        paging.run_due()


class Paging(Job):
    """The pages of one worker."""

    name = "pages"
    due = or_(RECIPIENTS_ARE_DUE_SOON, CONTACTS_ARE_DUE)
    pause_seconds = 0.0
    #: None is held while a message is in progress.
    connections = 4

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = system_clock,
        share: Callable[[], float] = random_share,
    ) -> None:
        """Open the database; `share` varies the pauses between attempts."""
        super().__init__(settings, clock=clock)
        self._share = share
        self._keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
        self._lanes = Lanes()
        self._senders = PageSenders(settings, clock=clock)
        self._threads: list[Thread] = []

    def stop(self) -> None:
        """Let the messages under way finish; others stay for the next worker."""
        self.is_stopped.set()
        deadline = monotonic() + ATTEMPT_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - monotonic(), 0))
        self._senders.close()
        super().stop()

    def run_due(self) -> int:
        """Gather and send everything that is due now; return how many contacts got messages."""
        while self._gather():
            pass
        count = 0
        while begun := self._begin_due():
            count += len(begun)
            for thread in begun:
                thread.join()
        return count

    def look(self) -> int:
        """Gather what is due, and begin to send what there is a place for."""
        gathered = self._gather()
        self._threads = [each for each in self._threads if each.is_alive()]
        begun = self._begin_due()
        self._threads += begun
        return gathered + len(begun)

    def _gather(self) -> int:
        if not self.has(RECIPIENTS_ARE_DUE_SOON):
            return 0
        with Session(self.reading) as session:
            # They are ready when the pages leave.
            self._senders.prepare(types_in_use(session=session))
        if not self.has(RECIPIENTS_ARE_DUE):
            return 0
        with Session(self.engine) as session, session.begin():
            policy = policy_of(current_settings(self.settings, session=session))
            return gather_due(policy, session=session, now=self.clock())

    def _begin_due(self) -> list[Thread]:
        """Claim contacts for which there is a place, and begin to send to them."""
        if self._lanes.free <= 0 or not self.has(CONTACTS_ARE_DUE):
            return []
        with Session(self.reading) as session:
            found = find_due_lanes(
                except_lanes=self._lanes.full,
                limit=_LOOKED_AT,
                session=session,
                now=self.clock(),
            )
        wanted = [(contact_id, lane) for contact_id, lane in found if self._lanes.take(lane)]
        return self._begin(wanted)

    def _begin(self, wanted: Sequence[tuple[int, str]]) -> list[Thread]:
        claims: Sequence[Claim] = ()
        settings = self.settings
        try:
            if wanted:
                with Session(self.engine) as session, session.begin():
                    ids = [contact_id for contact_id, _ in wanted]
                    claims = claim_contacts(ids, session=session, now=self.clock())
                    settings = current_settings(self.settings, session=session)
        finally:
            claimed = {claim.contact_id for claim in claims}
            for contact_id, lane in wanted:
                if contact_id not in claimed:
                    self._lanes.leave(lane)
        begun = [
            Thread(target=self._send_all, args=(claim, settings), name="page", daemon=True)
            for claim in claims
        ]
        for thread in begun:
            thread.start()
        return begun

    def _send_all(self, claim: Claim, settings: Settings) -> None:
        """Send what waits for a contact until there is nothing more, or an attempt fails."""
        did_well: bool | None = None
        try:
            did_well = self._send_waiting(claim, settings)
        except SQLAlchemyError as error:  # the claim ends by itself
            _log.warning("pages interrupted", extra=_about(claim, reason=type(error).__name__))
        except Exception as error:  # noqa: BLE001 - it would be raised again and again
            _log.exception("a page could not be sent", extra=_about(claim))
            problem = Problem(f"an error of this service ({type(error).__name__})")
            with suppress(SQLAlchemyError):
                self._note_failure(claim, problem, settings)
        finally:
            self._lanes.leave(claim.lane, did_well=did_well)
            self.tell()  # a place became free

    def _send_waiting(self, claim: Claim, settings: Settings) -> bool | None:
        """Return whether the last attempt succeeded in good time; None if nothing was sent."""
        did_well: bool | None = None
        while (delivery := self._next(claim, settings)) is not None:
            if self.is_stopped.is_set():
                self._in_transaction(lambda session: release(claim, session=session))
                break
            began = monotonic()
            problem = self._senders.send(delivery, settings)
            did_well = problem is None and monotonic() - began < _SLOW_SECONDS
            if problem is not None:
                self._note_failure(claim, problem, settings, delivery)
                break
            self._note_sent(claim, delivery)
        return did_well

    def _next(self, claim: Claim, settings: Settings) -> Delivery | None:
        policy = policy_of(settings)
        try:
            with Session(self.engine) as session, session.begin():
                return next_delivery(
                    claim, policy, session=session, keyring=self._keyring, now=self.clock()
                )
        except LostAddressError as error:
            self._note_failure(claim, Problem(str(error)), settings)
            return None

    def _note_sent(self, claim: Claim, delivery: Delivery) -> None:
        """Note what was sent, however long the database is unavailable: it would be sent again."""
        while True:
            try:
                self._in_transaction(
                    lambda session: record_sent(claim, delivery, session=session, now=self.clock())
                )
                break
            except SQLAlchemyError:
                if self.is_stopped.wait(_NOTING_SECONDS):
                    raise
        _log.info("page sent", extra=_about(claim, messages=len(delivery.message_ids)))

    def _note_failure(
        self, claim: Claim, problem: Problem, settings: Settings, delivery: Delivery | None = None
    ) -> None:
        policy, share = policy_of(settings), self._share()
        with Session(self.engine) as session, session.begin():
            given_up = record_failure(
                claim,
                problem,
                policy,
                delivery=delivery,
                share=share,
                session=session,
                now=self.clock(),
            )
        said = _about(claim, reason=problem.reason)
        if given_up:
            _log.error("page given up", extra=said)
        else:
            _log.warning("page not sent, trying again later", extra=said)

    def _in_transaction(self, work: Callable[[Session], None]) -> None:
        with Session(self.engine) as session, session.begin():
            work(session)


def policy_of(settings: Settings) -> PagingPolicy:
    """Return what the settings say about pages."""
    return PagingPolicy(
        base_url=settings.base_url,
        instance_name=settings.instance_name,
        sends_mail=bool(settings.mail_url),
        link_keys=(settings.secret_key, *settings.secret_key_fallbacks),
        keyring=Keyring(settings.secret_key, *settings.secret_key_fallbacks),
        reading=reading(settings),
        explain={Subject.ALERT: page_reasons, Subject.INCIDENT: reasons_of_incidents},
        find_holds=find_page_holds,
    )


def _about(claim: Claim, **more: object) -> dict[str, object]:
    return {"contact_id": claim.contact_id, **more}
