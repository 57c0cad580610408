"""Queues messages for contacts.

`domain/paging/notifications/outbox.py` assigns the queued messages to workers.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, case, or_, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update, build_session_insert
from domain.delivery.mail.outbox import NewEmail
from domain.delivery.queue import Backoff, ExclusiveQueue
from domain.paging.notifications.contact_types.mail import EMAIL, EMAIL_LANE
from models import Contact, PageMessage

#: Contacts with queued messages. A claim is longer than any attempt. If a worker is killed, its
#: contacts wait until their claims expire. The first pause of a failing contact is at most 12.5
#: seconds, and the longest pause is slightly over six minutes.
CONTACT_QUEUE = ExclusiveQueue(
    row=Contact,
    due_at=Contact.next_try_at,
    claim_lifetime=timedelta(seconds=30),
    backoff=Backoff(first=timedelta(seconds=10), longest=timedelta(minutes=5), jitter=0.25),
)
#: Pause before a new message to a failing contact is tried, even if the contact's pause is longer.
NEW_MESSAGE_PAUSE = timedelta(seconds=5)
#: Age at which an unsent message is given up.
GIVE_UP_AFTER = timedelta(hours=6)


class MessageKind(StrEnum):
    """The purpose of a message: a page, a notice, a confirmation code or a test."""

    PAGE = "page"
    #: A notice to maintainers about pages that other users should have received.
    NOTICE = "notice"
    CODE = "code"
    TEST = "test"


#: Kinds of messages that are retried until they are sent or too old. Other kinds are tried once.
RETRIED_KINDS = frozenset({MessageKind.PAGE, MessageKind.NOTICE})


def queue_batch(
    batch_id: int,
    contact_ids: Iterable[int],
    *,
    session: Session,
    now: datetime,
    due_at: datetime | None = None,
) -> None:
    """Queue the pages of a batch for contacts, immediately or at `due_at`."""
    for contact_id in contact_ids:
        _insert_message(
            contact_id,
            MessageKind.PAGE,
            session=session,
            now=now,
            due_at=due_at,
            batch_id=batch_id,
        )


def queue_message(contact_id: int, kind: MessageKind, *, session: Session, now: datetime) -> int:
    """Queue a test message or a confirmation code for a contact.

    Return the ID of the message.
    """
    return _insert_message(contact_id, kind, session=session, now=now) or 0


def queue_notice(contact_id: int, notice: NewEmail, *, session: Session, now: datetime) -> None:
    """Queue a notice for a contact, unless the contact already has a notice with the same key."""
    _insert_message(
        contact_id,
        MessageKind.NOTICE,
        session=session,
        now=now,
        key=notice.key,
        subject=notice.subject,
        text=notice.text,
        about=notice.about,
    )


def _insert_message(
    contact_id: int,
    kind: MessageKind,
    *,
    session: Session,
    now: datetime,
    due_at: datetime | None = None,
    **more: object,
) -> int | None:
    of_all = {"contact_id": contact_id, "kind": kind.value, "created_at": now, "tries": 0}
    values = {**of_all, "due_at": due_at, **more}
    insert = (
        build_session_insert(PageMessage, session=session).values(values).on_conflict_do_nothing()
    )
    # Store the message before the contact is scheduled, since workers then look for messages.
    message_id: int | None = session.scalar(insert.returning(PageMessage.id))
    if message_id is None:
        return None
    # A new message is tried soon, even during a long pause.
    is_failing = Contact.failing_since.is_not(None) & (kind in RETRIED_KINDS) & (due_at is None)
    try_at = case((is_failing, now + NEW_MESSAGE_PAUSE), else_=due_at or now)
    schedule_contact_check(contact_id, try_at, session=session)
    return message_id


def schedule_contact_check(
    contact_id: int, try_at: datetime | ColumnElement[datetime], *, session: Session
) -> None:
    """Schedule the next check of a contact's messages no later than the given time."""
    is_later = or_(Contact.next_try_at.is_(None), Contact.next_try_at > try_at)
    session.execute(
        build_bulk_update(Contact)
        .where(Contact.id == contact_id)
        .values(next_try_at=case((is_later, try_at), else_=Contact.next_try_at))
    )


def build_due_message_condition(now: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that is true for messages that no notification rule delays."""
    return or_(PageMessage.due_at.is_(None), PageMessage.due_at <= now)


def build_confirmed_contact_conditions(user_id: int) -> tuple[ColumnElement[bool], ...]:
    """Return SQL conditions that select the contacts at which a user can be paged."""
    return (
        Contact.user_id == user_id,
        Contact.confirmed_at.is_not(None),
        Contact.address_ciphertext.is_not(None),
    )


def get_or_create_account_contact(user_id: int, *, session: Session, now: datetime) -> int:
    """Return the ID of the contact for the email address of an account.

    The contact is created if necessary.
    """
    is_theirs = Contact.user_id == user_id, Contact.address_ciphertext.is_(None)
    found = session.scalar(select(Contact.id).where(*is_theirs))
    if found is None:
        values = {
            "user_id": user_id,
            "type": EMAIL.name,
            "label": "Account email",
            "shown_address": "",
            "lane": EMAIL_LANE,
            "created_at": now,
            "confirmed_at": now,
            "code_tries": 0,
            "claim": 0,
            "tries": 0,
        }
        session.execute(
            build_session_insert(Contact, session=session).values(values).on_conflict_do_nothing()
        )
        found = session.scalars(select(Contact.id).where(*is_theirs)).one()
    return found
