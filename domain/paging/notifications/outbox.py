"""Assigns the queued messages of each contact to one worker at a time, in order.

A worker that has lost its claim can only record the messages that it has sent. Queued messages
about alerts for the same contact are combined into one message, which prevents a flood of messages
after an outage.

Locks are taken in this order: failing contacts, the recipient, contacts, batches, and pages.
Batching and canceling also lock recipients first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, bindparam, exists, func, select
from sqlalchemy.orm import Session

from domain.access.authorizations import has_live_access
from domain.accounts.users import ACTIVE
from domain.core.database.bulk_statements import build_session_insert
from domain.core.database.locks import AdvisoryLock
from domain.core.due_time_sql import NOW
from domain.core.errors import ConflictError
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.queue import Claim
from domain.paging.notifications.contact_types.base import ContactMessage, SendProblem
from domain.paging.notifications.contact_types.registry import get_contact_type
from domain.paging.notifications.delivery_status import (
    add_given_up_activity_entries,
    deactivate_device,
    find_failed_batches,
    record_pages_accepted,
    record_pages_failed,
    report_abandoned_messages,
    report_failed_batches,
)
from domain.paging.notifications.message_content import (
    MessageContent,
    build_code_content,
    build_page_content,
    build_test_content,
)
from domain.paging.notifications.message_queue import (
    CONTACT_QUEUE,
    GIVE_UP_AFTER,
    RETRIED_KINDS,
    MessageKind,
    build_confirmed_contact_conditions,
    build_due_message_condition,
    get_or_create_account_contact,
    queue_batch,
)
from domain.paging.notifications.notice_checks import find_notice_block_reason
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.notifications.push_requests import SUBSCRIPTION_ENDED
from domain.paging.notifications.send_checks import (
    apply_check_results,
    build_recipient_condition,
    check_pages,
    clear_stale_holds,
    find_contact_recipient,
)
from domain.paging.notifications.states import (
    FAILED_ATTEMPT_TOTAL,
    MessageEvent,
    MessageState,
    PageEvent,
    get_message_state_after,
)
from models import Contact, Page, PageMessage, PageRecipient, PageTotal, User

_MAX_ERROR_LENGTH = 500
#: Pause before a notice about muted alerts is checked again.
_MUTED_NOTICE_CHECK_INTERVAL = timedelta(minutes=1)


#: Query for the outcome and the last error of a message. The outcome is NULL while the message is
#: queued.
MESSAGE_OUTCOME_QUERY = select(PageMessage.outcome, PageMessage.last_error).where(
    PageMessage.id == bindparam("message_id")
)


class UnusableAddressError(Exception):
    """Error for an address that no key can decrypt, or that is not or no longer confirmed."""

    def __init__(self, problem: SendProblem) -> None:
        """Store the problem, which is shown to users."""
        super().__init__(problem.reason)
        self.problem = problem


def find_due_contacts(
    *, except_lanes: Collection[str], limit: int, session: Session, now: datetime
) -> Sequence[tuple[int, str]]:
    """Return the IDs and lanes of contacts that can be claimed, longest waiting first."""
    due = select(Contact.id, Contact.lane).where(
        CONTACT_QUEUE.build_due_condition(now), Contact.lane.not_in(except_lanes)
    )
    rows = session.execute(due.order_by(Contact.next_try_at, Contact.id).limit(limit))
    return [(contact_id, lane) for contact_id, lane in rows]


#: Condition that is true if a contact can be claimed.
CONTACTS_ARE_DUE = exists().where(CONTACT_QUEUE.build_due_condition(NOW))


def take_next_message(
    claim: Claim,
    policy: PagingSettings,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> ContactMessage | None:
    """Renew a claim, and return the next message to send.

    Release the claim and return None if there is nothing to send. Raise UnusableAddressError if the
    address cannot be decrypted, or if the contact is not or no longer confirmed.
    """
    queue = _lock_contact(CONTACT_QUEUE.build_claim_condition(claim), session=session, now=now)
    if queue is None:
        return None
    contact = queue.contact
    while messages := queue.find_next_messages():
        queue.cancel_blocked_pages(messages, policy)
        content = queue.build_content(messages, policy, keyring)
        if content is not None:
            CONTACT_QUEUE.renew_claim(contact, now=now)
            attempt_id = messages[0].attempt_id
            for each in messages:
                each.is_under_way, each.attempt_id = True, attempt_id or messages[0].id
            return ContactMessage(
                type=get_contact_type(contact.type),
                address=queue.get_address(MessageKind(messages[0].kind), keyring),
                content=content,
                message_ids=tuple(each.id for each in messages),
                attempt_id=attempt_id or messages[0].id,
                is_repeat=attempt_id is not None,
                tries=contact.tries + 1,
                created_at=messages[0].created_at,
            )
        queue.complete_empty_messages(messages)
    contact.claimed_until, contact.next_try_at = None, queue.find_next_delayed_time()
    return None


def record_message_sent(
    claim: Claim, delivery: ContactMessage, *, session: Session, now: datetime
) -> None:
    """Record that messages were sent, even if the claim was lost in the meantime."""
    queue = _lock_contact(Contact.id == claim.destination_id, session=session, now=now)
    if queue is None:
        return
    contact = queue.contact
    if contact.claim == claim.number:  # Otherwise, the contact may have another address now.
        CONTACT_QUEUE.record_success(contact)
        contact.last_sent_at = now
    messages = queue.list_waiting_messages(PageMessage.id.in_(delivery.message_ids))
    for each in messages:
        each.is_under_way = False
    batches = [each.batch_id for each in messages if each.batch_id is not None]
    record_pages_accepted(batches, session=session, now=now)
    queue.complete_messages(messages, get_message_state_after(MessageEvent.TAKEN))


def record_failed_attempt(  # noqa: PLR0913 - inputs and results of an attempt
    claim: Claim,
    problem: SendProblem,
    policy: PagingSettings,
    *,
    delivery: ContactMessage | None = None,
    share: float,
    session: Session,
    now: datetime,
) -> int | None:
    """Record a failed attempt, schedule the next attempt, and release the claim.

    Return the number of messages that were given up, or None if the claim was lost. Codes and tests
    are tried only once, and messages that are too old are not retried. `share`, a number from 0 to
    1, varies the pause. A message that may have arrived is sent again unchanged, so that its
    recipient recognizes the duplicate.
    """
    AdvisoryLock.FAILING_CONTACTS.acquire(session)
    queue = _lock_contact(CONTACT_QUEUE.build_claim_condition(claim), session=session, now=now)
    if queue is None:
        return None
    contact = queue.contact
    shows_words = problem.words and _can_show_responses(contact)
    words = f"{problem.reason}: {problem.words}" if shows_words else problem.reason
    pause = CONTACT_QUEUE.backoff.compute_pause(
        contact.tries + 1, share=share, requested=timedelta(seconds=problem.retry_after or 0)
    )
    CONTACT_QUEUE.record_failure(contact, words[:_MAX_ERROR_LENGTH], pause=pause, now=now)
    waiting = queue.list_waiting_messages(build_due_message_condition(now))
    for each in waiting:
        each.tries += 1
        if delivery is None or each.id in delivery.message_ids:
            is_unknown = delivery is not None and delivery.is_repeat
            each.is_under_way = problem.may_have_arrived or is_unknown
            each.attempt_id = each.attempt_id if each.is_under_way else None
        # Other users can see the errors of pages, so these errors omit the service's response. Only
        # the owner of the contact can see the response.
        each.last_error = problem.reason if each.kind in RETRIED_KINDS else contact.last_error
    over = [each for each in waiting if _is_final_failure(each, problem, now)]
    if problem.has_ended:
        deactivate_device(contact, policy, session=session, now=now)
    report_abandoned_messages(contact, over, problem.reason, policy, session=session, now=now)
    queue.reroute_failed_batches(waiting, problem, policy)
    for outcome, kinds in _FAILURE_OUTCOMES:
        queue.complete_messages([each for each in over if each.kind in kinds], outcome)
    again_at = now + pause if len(over) < len(waiting) else None
    by_rule = queue.find_next_delayed_time()
    contact.next_try_at = min(filter(None, (again_at, by_rule)), default=None)
    queue.add_to_outcome_total(FAILED_ATTEMPT_TOTAL, 1)
    return sum(each.kind == MessageKind.PAGE.value for each in over)


def _can_show_responses(contact: Contact) -> bool:
    """Return whether users may read the responses of a contact's service.

    Without this check, a user could read data from an internal network by adding a URL. A contact
    must be confirmed, and must have accepted a message. Email contacts need not have accepted a
    message, since email is only sent to the mail server of this instance.
    """
    is_trusted = contact.last_sent_at is not None or get_contact_type(contact.type).uses_mail_server
    return contact.confirmed_at is not None and is_trusted


#: Final states of failed messages by message kind, in the order in which totals are locked.
_FAILURE_OUTCOMES = (
    (MessageState.FAILED, frozenset(MessageKind) - RETRIED_KINDS),
    (get_message_state_after(MessageEvent.REFUSED), RETRIED_KINDS),
)


def _is_final_failure(message: PageMessage, problem: SendProblem, now: datetime) -> bool:
    is_retried = MessageKind(message.kind) in RETRIED_KINDS
    return not is_retried or problem.is_final or now - message.created_at >= GIVE_UP_AFTER


def _lock_contact(
    *which: ColumnElement[bool], session: Session, now: datetime
) -> "_ContactQueue | None":
    """Lock the recipient of a contact, and then the contact.

    Return None if the contact was deleted.
    """
    found = session.execute(select(Contact.id, Contact.user_id).where(*which)).first()
    if found is None:
        return None
    is_theirs = build_recipient_condition(found.id, found.user_id)
    session.execute(select(PageRecipient.id).where(is_theirs).with_for_update())
    contact = session.scalar(select(Contact).where(*which).with_for_update())
    return _ContactQueue(contact, session, now) if contact is not None else None


def give_up_tried_messages(contact_id: int, *, session: Session, now: datetime) -> int:
    """Give up the messages to a contact that failed before, and return their number.

    The activity of the alerts shows this. The first failure of a message has already notified the
    fallback contacts and the escalation, so neither waits for the message. Raise ConflictError if a
    worker is sending messages to the contact.
    """
    AdvisoryLock.FAILING_CONTACTS.acquire(session)
    queue = _lock_contact(Contact.id == contact_id, session=session, now=now)
    if queue is None:
        return 0
    contact = queue.contact
    if contact.claimed_until is not None and contact.claimed_until > now:
        raise ConflictError("A message to this contact is being sent. Try again in a minute.")
    over = queue.list_waiting_messages(
        PageMessage.tries > 0, PageMessage.kind.in_([each.value for each in RETRIED_KINDS])
    )
    add_given_up_activity_entries(contact, over, session=session, now=now)
    queue.complete_messages(over, get_message_state_after(MessageEvent.GIVEN_UP))
    session.flush()
    if not queue.list_waiting_messages(build_due_message_condition(now)):
        contact.next_try_at = queue.find_next_delayed_time()
    return len(over)


@dataclass(frozen=True)
class _ContactQueue:
    """A locked contact and its queued messages."""

    contact: Contact
    session: Session
    now: datetime

    def list_waiting_messages(self, *which: ColumnElement[bool]) -> Sequence[PageMessage]:
        """Return the queued messages that meet conditions, oldest first."""
        wanted = *self._build_waiting_conditions(), *which
        statement = select(PageMessage).where(*wanted).order_by(PageMessage.id)
        return self.session.scalars(statement).all()

    def find_next_delayed_time(self) -> datetime | None:
        """Return the due time of the next message that a notification rule delays, or None."""
        later = *self._build_waiting_conditions(), PageMessage.due_at > self.now
        return self.session.scalar(select(func.min(PageMessage.due_at)).where(*later))

    def _build_waiting_conditions(self) -> tuple[ColumnElement[bool], ...]:
        return PageMessage.contact_id == self.contact.id, PageMessage.ended_at.is_(None)

    def find_next_messages(self) -> Sequence[PageMessage]:
        """Return the messages to send next: a code or test, all messages about alerts, or a notice.

        Messages of an attempt that may have succeeded are sent again unchanged, without later
        messages.
        """
        waiting = self.list_waiting_messages(build_due_message_condition(self.now))
        pages = [each for each in waiting if each.kind == MessageKind.PAGE.value]
        notices = [each for each in waiting if each.kind == MessageKind.NOTICE.value]
        alone = [each for each in waiting if MessageKind(each.kind) not in RETRIED_KINDS]
        unknown = next((each.attempt_id for each in pages if each.attempt_id is not None), None)
        attempted = [each for each in pages if unknown is not None and each.attempt_id == unknown]
        return alone[:1] or attempted or pages or notices[:1]

    def cancel_blocked_pages(self, messages: Sequence[PageMessage], policy: PagingSettings) -> None:
        """Cancel or hold the pages of messages that must not be sent now.

        All pages of the messages are checked together.
        """
        session, now = self.session, self.now
        batches = sorted({each.batch_id for each in messages if each.batch_id is not None})
        if not batches:
            return
        recipient = find_contact_recipient(self.contact, session=session)
        if recipient is None:
            return
        clear_stale_holds(batches, session=session)
        # Held pages of a batch are queued again in another batch, so these messages no longer
        # contain them.
        which = Page.batch_id.in_(batches), Page.held_by.is_(None)
        verdicts = check_pages(recipient, *which, policy=policy, session=session, now=now)
        named = get_contact_type(self.contact.type).generic_name
        by = named or f"the contact “{self.contact.label}”"
        reason = apply_check_results(verdicts, recipient, by=by, session=session, now=now)
        if reason is not None:
            for each in messages:
                each.cancelled_because = reason

    def build_content(
        self, messages: Sequence[PageMessage], policy: PagingSettings, keyring: Keyring
    ) -> MessageContent | None:
        """Return the content of messages, or None if there is nothing to send now."""
        contact, session, now = self.contact, self.session, self.now
        kind = MessageKind(messages[0].kind)
        state = select(User.state).where(User.id == contact.user_id)
        if contact.user_id is not None and session.scalar(state) != ACTIVE:
            return None
        if kind is MessageKind.PAGE:
            return build_page_content(contact, messages, policy, session=session, now=now)
        if kind is MessageKind.NOTICE:
            return self._build_notice_content(messages[0], policy)
        if kind is MessageKind.TEST:
            return build_test_content(contact, policy)
        return build_code_content(contact, policy, keyring=keyring, now=now)

    def _build_notice_content(
        self, message: PageMessage, policy: PagingSettings
    ) -> MessageContent | None:
        """Return the content of a notice, or None if the notice must not be sent now."""
        why = find_notice_block_reason(
            message.about,
            policy.find_holds,
            parser_settings=policy.reading,
            session=self.session,
            now=self.now,
        )
        if why is None:
            text = message.text or ""
            return MessageContent(subject=message.subject or "", text=text, is_alarm=True)
        if why.waits:
            message.due_at = self.now + _MUTED_NOTICE_CHECK_INTERVAL
        else:
            message.cancelled_because = why.reason
        return None

    def get_address(self, kind: MessageKind, keyring: Keyring) -> str:
        """Return the address of the contact for a message.

        Raise UnusableAddressError if the address is unusable. Only codes are sent to a contact that
        is not confirmed, or that an application without access has confirmed.
        """
        contact = self.contact
        if contact.address_ciphertext is None:
            email = select(User.email).where(User.id == contact.user_id)
            return self.session.scalar(email) or ""
        if contact.confirmed_at is None and not get_contact_type(contact.type).is_entered:
            raise UnusableAddressError(SUBSCRIPTION_ENDED)
        has_access = has_live_access(Contact.authorization_id, self.now)
        is_confirmed = contact.confirmed_at is not None and (
            contact.authorization_id is None
            or self.session.scalar(select(has_access).where(Contact.id == contact.id))
        )
        if not is_confirmed and kind is not MessageKind.CODE:
            raise UnusableAddressError(SendProblem("it is not confirmed", is_final=True))
        try:
            return keyring.decrypt(contact.address_ciphertext)
        except UndecryptableError as error:
            message = "its address was encrypted with a SECRET_KEY that is no longer known"
            raise UnusableAddressError(SendProblem(message)) from error

    def complete_empty_messages(self, messages: Sequence[PageMessage]) -> None:
        """Complete messages without content.

        The pages of these messages are recorded as failed, so that escalations do not wait for the
        messages. Canceled messages are counted separately.
        """
        batches = [each.batch_id for each in messages if each.batch_id is not None]
        if batches:
            pages = Page.batch_id.in_(batches)
            record_pages_failed(PageEvent.ALL_FAILED, pages, session=self.session, now=self.now)
        for event, is_cancelled in (
            (MessageEvent.NOTHING_TO_SAY, False),
            (MessageEvent.NOT_ALLOWED, True),
        ):
            some = [
                each
                for each in messages
                if bool(each.cancelled_because) is is_cancelled
                # A notice about muted alerts is due later.
                and (each.due_at is None or each.due_at <= self.now)
            ]
            self.complete_messages(some, get_message_state_after(event))

    def complete_messages(self, messages: Sequence[PageMessage], outcome: MessageState) -> None:
        """Mark messages as completed, and update the totals."""
        # Older releases do not support `cancelled`.
        is_cancelled = outcome is MessageState.CANCELLED
        stored = MessageState.WITHDRAWN.value if is_cancelled else outcome.value
        for each in messages:
            each.ended_at, each.outcome = self.now, stored
        if messages:
            self.add_to_outcome_total(outcome.value, len(messages))

    def add_to_outcome_total(self, what: str, count: int) -> None:
        """Increase the number of messages with the given outcome."""
        self.session.flush()  # Totals are locked last, since other workers wait for them.
        values = {"type": self.contact.type, "outcome": what, "count": count}
        insert = build_session_insert(PageTotal, session=self.session).values(values)
        self.session.execute(
            insert.on_conflict_do_update(
                index_elements=[PageTotal.type, PageTotal.outcome],
                set_={"count": PageTotal.count + insert.excluded.count},
            )
        )

    def reroute_failed_batches(
        self, tried: Sequence[PageMessage], problem: SendProblem, policy: PagingSettings
    ) -> None:
        """Queue failed batches for fallback contacts, or mark the pages of the batches as failed.

        Fallback contacts are the user's other confirmed contacts and the email address of the
        account.
        """
        session, now = self.session, self.now
        of_batches = {each.batch_id: each for each in tried if each.batch_id is not None}
        lost = find_failed_batches(of_batches, session=session, now=now) if of_batches else ()
        if not lost:
            return
        passed_on = set[int]()
        for other in self._find_fallback_contacts(problem, policy):
            told = select(PageMessage.batch_id).where(
                PageMessage.contact_id == other, PageMessage.batch_id.in_(lost)
            )
            for each in sorted(set(lost) - set(session.scalars(told))):
                queue_batch(each, [other], session=session, now=now)
                passed_on.add(each)
        lost = [each for each in lost if each not in passed_on]
        # Messages that were given up have been reported already.
        unsaid = [each for each in lost if not _is_final_failure(of_batches[each], problem, now)]
        report_failed_batches(
            self.contact, unsaid, problem.reason, policy, session=session, now=now
        )
        of_lost = Page.batch_id.in_(lost)
        record_pages_failed(PageEvent.ALL_FAILED, of_lost, session=session, now=now)

    def _find_fallback_contacts(
        self, problem: SendProblem, policy: PagingSettings
    ) -> Sequence[int]:
        """Return the fallback contacts of a user.

        Projects and groups have no fallback contacts.
        """
        user_id, session = self.contact.user_id, self.session
        if user_id is None:
            return ()
        confirmed = select(Contact.id).where(*build_confirmed_contact_conditions(user_id))
        contacts = session.scalars(confirmed.order_by(Contact.id)).all()
        if problem.is_of_all_mail or not policy.sends_mail:
            return contacts
        return [*contacts, get_or_create_account_contact(user_id, session=session, now=self.now)]
