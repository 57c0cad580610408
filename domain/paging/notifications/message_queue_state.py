"""State of the message queue: queued messages, abandoned messages, and failing contacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.types.base import get_column_values
from domain.delivery.queue import FailingDestination, QueueState
from domain.paging.notifications.contact_types.base import ContactType
from domain.paging.notifications.contact_types.registry import CONTACT_TYPES, get_contact_type
from domain.paging.notifications.message_queue import build_due_message_condition, queue_batch
from domain.paging.notifications.states import (
    ENDED_STATES,
    FAILED_ATTEMPT_TOTAL,
    REQUEUED_OUTCOME,
    MessageState,
)
from models import Contact, Group, Page, PageMessage, PageRecipient, PageTotal, Project, User

#: Maximum number of given-up messages that are listed.
_MAX_LISTED = 50
#: Delay after the due time, beyond which a page or message counts as overdue.
_OVERDUE_TOLERANCE = timedelta(minutes=1)


_UNBATCHED_PAGES_QUERY = (
    select(func.count(Page.id))
    .join(PageRecipient, PageRecipient.id == Page.recipient_id)
    .where(PageRecipient.due_at.is_not(None), Page.batch_id.is_(None), Page.withdrawn_at.is_(None))
)


@dataclass(frozen=True, kw_only=True)
class ContactTypeState:
    """The state of messages to contacts of one type."""

    type: ContactType
    waiting: int
    #: Time since which the oldest message has been waiting.
    oldest_at: datetime | None
    #: Number of contacts for which the last attempt failed.
    failing: int
    #: Total number of messages by final state.
    ended: Mapping[MessageState, int]
    #: Total number of failed attempts.
    failed_attempts: int


@dataclass(frozen=True, kw_only=True)
class AbandonedMessage:
    """An abandoned message about alerts, with the owner and label of its contact."""

    id: int
    owner: str
    label: str
    type: ContactType
    ended_at: datetime
    tries: int


@dataclass(frozen=True, kw_only=True)
class MessageQueueState:
    """The state of the message queue by contact type, and the latest abandoned messages."""

    types: tuple[ContactTypeState, ...]
    #: Number of pages that wait for batching or for the end of quiet hours.
    pages: int
    given_up: tuple[AbandonedMessage, ...]


def find_contact_type_states(*, session: Session, now: datetime) -> Sequence[ContactTypeState]:
    """Return the state of messages for each contact type.

    Only queued messages are read. Messages that a notification rule delays do not count as waiting.
    """
    begun = func.coalesce(PageMessage.due_at, PageMessage.created_at)
    waiting = {
        kind: (count, oldest)
        for kind, count, oldest in session.execute(
            select(Contact.type, func.count(PageMessage.id), func.min(begun))
            .join(PageMessage, PageMessage.contact_id == Contact.id)
            .where(PageMessage.ended_at.is_(None), build_due_message_condition(now))
            .group_by(Contact.type)
        )
    }
    is_failing = Contact.failing_since.is_not(None) & Contact.next_try_at.is_not(None)
    failing: dict[str, int] = dict(
        session.execute(
            select(Contact.type, func.count()).where(is_failing).group_by(Contact.type)
        ).all()
    )
    totals = {(row.type, row.outcome): row.count for row in session.scalars(select(PageTotal))}
    return [
        ContactTypeState(
            type=each,
            waiting=waiting.get(each.name, (0, None))[0],
            oldest_at=waiting.get(each.name, (0, None))[1],
            failing=failing.get(each.name, 0),
            ended={outcome: totals.get((each.name, outcome.value), 0) for outcome in ENDED_STATES},
            failed_attempts=totals.get((each.name, FAILED_ATTEMPT_TOTAL), 0),
        )
        for each in CONTACT_TYPES
    ]


def get_message_queue_state(*, session: Session, now: datetime) -> MessageQueueState:
    """Return the state of the queue by contact type, with the latest abandoned messages."""
    return MessageQueueState(
        types=tuple(find_contact_type_states(session=session, now=now)),
        pages=session.scalar(_UNBATCHED_PAGES_QUERY) or 0,
        given_up=tuple(_list_abandoned_messages(session)),
    )


def get_paging_queue_state(*, session: Session, now: datetime) -> QueueState:
    """Return the state of the queues of all contact types together."""
    states = find_contact_type_states(session=session, now=now)
    return QueueState(
        waiting=sum(each.waiting for each in states),
        oldest_at=min((each.oldest_at for each in states if each.oldest_at), default=None),
        failing=sum(each.failing for each in states),
    )


def list_failing_contacts(*, session: Session) -> Sequence[FailingDestination]:
    """Return the contacts whose last attempt failed, longest failing first."""
    waiting = (
        select(func.count(PageMessage.id))
        .where(PageMessage.contact_id == Contact.id, PageMessage.ended_at.is_(None))
        .scalar_subquery()
    )
    rows = session.execute(
        select(Contact, User.username, func.coalesce(Project.path, Group.path), waiting)
        .outerjoin(User, User.id == Contact.user_id)
        .outerjoin(Project, Project.id == Contact.project_id)
        .outerjoin(Group, Group.id == Contact.group_id)
        .where(Contact.failing_since.is_not(None))
        .order_by(Contact.failing_since)
    )
    return [
        FailingDestination(
            id=str(row.id),
            name=row.label,
            about=f"{path or f'@{username}'} · {get_contact_type(row.type).label.lower()}",
            waiting=count,
            attempts=row.tries,
            failing_since=row.failing_since,
            next_attempt_at=row.next_try_at,
        )
        for row, username, path, count in rows
    ]


def _list_abandoned_messages(session: Session) -> list[AbandonedMessage]:
    rows = session.execute(
        select(PageMessage, Contact, User.username, func.coalesce(Project.path, Group.path))
        .join(Contact, Contact.id == PageMessage.contact_id)
        .outerjoin(User, User.id == Contact.user_id)
        .outerjoin(Project, Project.id == Contact.project_id)
        .outerjoin(Group, Group.id == Contact.group_id)
        .where(PageMessage.outcome == MessageState.GIVEN_UP.value)
        .order_by(PageMessage.ended_at.desc())
        .limit(_MAX_LISTED)
    )
    return [
        AbandonedMessage(
            **get_column_values(message, AbandonedMessage),
            owner=username or path,
            label=contact.label,
            type=get_contact_type(contact.type),
        )
        for message, contact, username, path in rows
        if message.ended_at is not None
    ]


@action("paging_queue.send_again")
def requeue_message(work: UnitOfWork, message_id: int) -> bool:
    """Requeue a message that was given up.

    The content is written when the message is sent, without alerts that no longer need attention.
    Return False if the message was not given up.
    """
    found = work.session.execute(
        build_bulk_update(PageMessage)
        .where(PageMessage.id == message_id, PageMessage.outcome == MessageState.GIVEN_UP.value)
        .values(outcome=REQUEUED_OUTCOME)
        .returning(PageMessage.contact_id, PageMessage.batch_id)
    ).first()
    if found is None or found.batch_id is None:
        return False
    queue_batch(found.batch_id, [found.contact_id], session=work.session, now=work.now)
    work.record_audit_event(EventKind.PAGES_SENT_AGAIN, details={"message_id": message_id})
    return True


def count_overdue_pages(*, session: Session, now: datetime) -> int:
    """Return the number of pages and messages about alerts that are more than a minute overdue.

    Messages that wait for a retry at a failing contact do not count.
    """
    before = now - _OVERDUE_TOLERANCE
    ungathered = _UNBATCHED_PAGES_QUERY.where(Page.due_at < before)
    messages = select(func.count(PageMessage.id)).join(
        Contact, Contact.id == PageMessage.contact_id
    )
    unsent = messages.where(
        PageMessage.ended_at.is_(None),
        build_due_message_condition(before),
        Contact.next_try_at < before,
    )
    return (session.scalar(ungathered) or 0) + (session.scalar(unsent) or 0)
