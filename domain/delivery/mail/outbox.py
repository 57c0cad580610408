"""The outbox: messages that wait to be sent, each by one worker at a time, and how many."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import exists, func, or_, select, true
from sqlalchemy.orm import Session

from domain.core.database.rows import insert_into, update_rows
from domain.core.keyring import Keyring, UndecipherableError
from domain.core.schedule_conditions import NOW
from models import Mail

#: How long a message is claimed by a worker before another one may take it.
_CLAIM_LIFETIME = timedelta(minutes=10)
#: The pause after the first failure; each further one is twice as long, up to the longest.
_FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=2)
#: A message that could not be delivered for so long is given up (RFC 5321 section 4.5.4.1).
_GIVE_UP_AFTER = timedelta(days=4)
#: Rows that are encrypted in one transaction.
_SLICE = 200
#: A URL of ours that ends with a secret, such as `/-/invitations/…`, without that end.
_SECRET_LINK = re.compile(r"(https?://\S+/(?:-/\w+|users/(?:password|sign_up))/)\S{20,}")
#: Whether a message waits to be sent.
MAIL_IS_DUE = exists().where(Mail.send_at <= NOW)


@dataclass(frozen=True, kw_only=True)
class NewMessage:
    """A message to one recipient; a second message with the same `key` is not stored."""

    key: str
    recipient: str
    subject: str
    text: str
    #: What a notice is about, so that it can be checked before each attempt.
    about: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Sign:
    """The settings that messages name: which installation sends them."""

    instance_name: str
    #: Without a trailing slash.
    base_url: str
    #: Encrypts the messages.
    keyring: Keyring = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Message(NewMessage):
    """A message claimed by a worker."""

    id: int
    created_at: datetime
    #: The number of attempts, including this one.
    tries: int


@dataclass(frozen=True)
class UnreadableMessage:
    """A message that no known key decrypts. It was given up."""

    id: int
    reason: str = "the text cannot be decrypted: SECRET_KEY was replaced"


def queue_messages(
    messages: Sequence[NewMessage], *, session: Session, keyring: Keyring, now: datetime
) -> int:
    """Store messages in the outbox and return how many of them are new."""
    if not messages:
        return 0
    rows = [
        {
            "key": message.key,
            "recipient": message.recipient,
            "subject": message.subject[:255],
            "text": "",
            "text_ciphertext": keyring.encrypt(message.text),
            "created_at": now,
            "send_at": now,
            "tries": 0,
            "about": message.about,
        }
        for message in messages
    ]
    insert = insert_into(Mail, session=session).values(rows)
    written = session.execute(
        insert.on_conflict_do_nothing(index_elements=[Mail.key]).returning(Mail.id)
    )
    return len(written.all())


def without_links(text: str) -> str:
    """Return the text of a message without the secrets of links, which prove that one reads it."""
    return _SECRET_LINK.sub(r"\1…", text)


def claim_message(
    *, session: Session, keyring: Keyring, now: datetime
) -> Message | UnreadableMessage | None:
    """Claim the message that is due first, or return None; no other worker gets it meanwhile."""
    due = (
        select(Mail.id)
        .where(Mail.send_at <= now)
        .order_by(Mail.send_at, Mail.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = (
        session.execute(
            update_rows(Mail)
            # A CTE, because the planner of Postgres could run a subquery for every row.
            .where(Mail.id.in_(due.cte("due").select()))
            .values(send_at=now + _CLAIM_LIFETIME, tries=Mail.tries + 1)
            .returning(
                Mail.id,
                Mail.key,
                Mail.recipient,
                Mail.subject,
                Mail.text_ciphertext,
                Mail.created_at,
                Mail.tries,
                Mail.about,
            )
        )
        .mappings()
        .first()
    )
    if row is None:
        return None
    claimed = dict(row)
    try:
        text = keyring.decrypt(claimed.pop("text_ciphertext") or "")
    except UndecipherableError:
        lost = UnreadableMessage(claimed["id"])
        values = {"send_at": None, "last_error": lost.reason}
        session.execute(update_rows(Mail).where(Mail.id == lost.id).values(values))
        return lost
    return Message(**claimed, text=text)


def record_sent(message: Message, *, session: Session, keyring: Keyring, now: datetime) -> None:
    """Mark a message as sent, and remove its links that let somebody in."""
    _record(message, session, keyring, send_at=None, sent_at=now, last_error=None)


def record_rejection(message: Message, reason: str, *, session: Session, keyring: Keyring) -> None:
    """Give up a message that was rejected; `reason` must contain no address and no secret."""
    _record(message, session, keyring, send_at=None, sent_at=None, last_error=reason)


def record_failure(
    message: Message, reason: str, *, session: Session, keyring: Keyring, now: datetime
) -> bool:
    """Schedule the next attempt after a pause; return False if the message is given up instead."""
    pause = min(_FIRST_PAUSE * 2 ** min(message.tries - 1, 10), LONGEST_PAUSE)
    will_retry = now + pause - message.created_at <= _GIVE_UP_AFTER
    send_at = now + pause if will_retry else None
    _record(message, session, keyring, send_at=send_at, sent_at=None, last_error=reason)
    return bool(will_retry)


def _record(
    message: Message,
    session: Session,
    keyring: Keyring,
    *,
    send_at: datetime | None,
    sent_at: datetime | None,
    last_error: str | None,
) -> None:
    values = {"send_at": send_at, "sent_at": sent_at, "last_error": last_error}
    kept = without_links(message.text)
    if send_at is None and kept != message.text:
        values["text_ciphertext"] = keyring.encrypt(kept)
    session.execute(
        update_rows(Mail)
        # Only the latest claim counts: this one may have expired.
        .where(Mail.id == message.id, Mail.tries == message.tries)
        .values(values)
    )


def encrypt_clear_messages(
    *, session: Session, keyring: Keyring, includes_tried: bool, between: Callable[[], None]
) -> int:
    """Encrypt the messages that hosts of older releases queued; return how many there were.

    A worker of an older release may be sending those that were tried before. They are left out
    until no such worker is present (`includes_tried`).
    """
    is_free = true() if includes_tried else or_(Mail.tries == 0, Mail.next_try_at.is_(None))
    some = (
        select(Mail.id, Mail.text, Mail.next_try_at)
        .where(Mail.text != "", is_free)
        .order_by(Mail.id)
        .limit(_SLICE)
        .with_for_update(skip_locked=True)
    )
    total = 0
    while rows := session.execute(some).all():
        for row in rows:
            is_waiting = row.next_try_at is not None
            text = row.text if is_waiting else without_links(row.text)
            values = {
                "text_ciphertext": keyring.encrypt(text),
                "send_at": row.next_try_at,
                "text": "",
                "next_try_at": None,
            }
            session.execute(update_rows(Mail).where(Mail.id == row.id).values(values))
        between()
        total += len(rows)
    return total


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """The messages that wait to be sent."""

    waiting: int
    #: Since when the oldest one waits; None without one.
    oldest_at: datetime | None
    #: How many of them were tried before, in vain.
    failing: int


def queue_state(*, session: Session) -> QueueState:
    """Return what waits; it reads what waits and nothing else."""
    count, oldest, failing = session.execute(
        select(
            func.count(),
            func.min(Mail.created_at),
            func.count().filter(Mail.last_error.is_not(None)),
        ).where(or_(Mail.send_at.is_not(None), Mail.next_try_at.is_not(None)))
    ).one()
    return QueueState(waiting=count, oldest_at=oldest, failing=failing)


def count_given_up(*, session: Session) -> int:
    """Return how many messages of those that are kept were never sent, and will not be."""
    is_over = Mail.send_at.is_(None) & Mail.next_try_at.is_(None)
    never_sent = select(func.count()).where(is_over, Mail.sent_at.is_(None))
    return session.scalar(never_sent) or 0
