"""The outbox: queued messages, each of which is sent by one worker at a time."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select, true
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update, build_session_insert
from domain.core.due_time_sql import NOW
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.queue import Backoff, DeliveryQueue, QueueState, is_set, read_queue_state
from models import Mail

MAIL_QUEUE = DeliveryQueue(
    due_at=Mail.send_at,
    attempts=Mail.tries,
    claim_lifetime=timedelta(minutes=10),
    backoff=Backoff(first=timedelta(minutes=1), longest=timedelta(hours=2)),
)
#: Time after which an undeliverable message is given up (RFC 5321 section 4.5.4.1).
_GIVE_UP_AFTER = timedelta(days=4)
#: Number of rows that are encrypted in one transaction.
_BATCH_SIZE = 200
#: URL of this service that ends with a secret, such as `/-/invitations/…`. The group contains the
#: URL without the secret.
_SECRET_LINK = re.compile(r"(https?://\S+/(?:-/\w+|users/(?:password|sign_up))/)\S{20,}")
#: Condition for messages whose last attempt failed.
MAIL_HAS_FAILED: ColumnElement[bool] = Mail.last_error.is_not(None)
#: Condition that at least one message is due.
MAIL_IS_DUE = exists().where(MAIL_QUEUE.build_due_condition(NOW))


@dataclass(frozen=True, kw_only=True)
class NewEmail:
    """An email to one recipient. A second email with the same `key` is not stored."""

    key: str
    recipient: str
    subject: str
    text: str
    #: Object that a notice is about. It is used to check the notice before each attempt.
    about: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class MessageSettings:
    """The settings that appear in messages, such as the name and URL of the instance."""

    instance_name: str
    #: Base URL without a trailing slash.
    base_url: str
    #: Keyring that encrypts the messages.
    keyring: Keyring = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ClaimedEmail(NewEmail):
    """A message that a worker has claimed."""

    id: int
    created_at: datetime
    #: Number of attempts, including the current attempt.
    tries: int
    #: Labels and URLs of the buttons in the HTML part, which are not stored.
    buttons: Sequence[tuple[str, str]] = field(default=(), repr=False)
    #: Identifier of the thread. Mail clients group messages with the same identifier.
    thread: str = ""


@dataclass(frozen=True)
class UndecryptableEmail:
    """A message that was abandoned, since no known key can decrypt it."""

    id: int
    reason: str = "the text cannot be decrypted: SECRET_KEY was replaced"


def queue_emails(
    messages: Sequence[NewEmail], *, session: Session, keyring: Keyring, now: datetime
) -> int:
    """Store messages in the outbox, and return the number of new messages."""
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
    insert = build_session_insert(Mail, session=session).values(rows)
    written = session.execute(
        insert.on_conflict_do_nothing(index_elements=[Mail.key]).returning(Mail.id)
    )
    return len(written.all())


def redact_secret_links(text: str) -> str:
    """Return the text of a message without the secrets in its links.

    A secret in a link proves that the user who opens the link has received the email.
    """
    return _SECRET_LINK.sub(r"\1…", text)


def claim_due_email(
    *, session: Session, keyring: Keyring, now: datetime
) -> ClaimedEmail | UndecryptableEmail | None:
    """Claim the message that is due first, so that no other worker sends it.

    Return None if no message is due.
    """
    claim = MAIL_QUEUE.claim_due_rows(
        Mail.id,
        Mail.key,
        Mail.recipient,
        Mail.subject,
        Mail.text_ciphertext,
        Mail.created_at,
        Mail.tries,
        Mail.about,
        session=session,
        now=now,
    )
    row = claim.mappings().first()
    if row is None:
        return None
    claimed = dict(row)
    try:
        text = keyring.decrypt(claimed.pop("text_ciphertext") or "")
    except UndecryptableError:
        lost = UndecryptableEmail(claimed["id"])
        values = {"send_at": None, "last_error": lost.reason}
        session.execute(build_bulk_update(Mail).where(Mail.id == lost.id).values(values))
        return lost
    return ClaimedEmail(**claimed, text=text)


def record_email_sent(
    message: ClaimedEmail, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Mark a message as sent, and remove the secrets from its links."""
    _store_result(message, session, keyring, send_at=None, sent_at=now, last_error=None)


def record_email_rejected(
    message: ClaimedEmail, reason: str, *, session: Session, keyring: Keyring
) -> None:
    """Abandon a rejected message instead of retrying it.

    `reason` must contain neither an address nor a secret.
    """
    _store_result(message, session, keyring, send_at=None, sent_at=None, last_error=reason)


def record_email_failed(
    message: ClaimedEmail, reason: str, *, session: Session, keyring: Keyring, now: datetime
) -> bool:
    """Schedule the next attempt after a pause, or return False if the message is too old."""
    pause = MAIL_QUEUE.backoff.compute_pause(message.tries)
    will_retry = now + pause - message.created_at <= _GIVE_UP_AFTER
    send_at = now + pause if will_retry else None
    _store_result(message, session, keyring, send_at=send_at, sent_at=None, last_error=reason)
    return bool(will_retry)


def _store_result(
    message: ClaimedEmail,
    session: Session,
    keyring: Keyring,
    *,
    send_at: datetime | None,
    sent_at: datetime | None,
    last_error: str | None,
) -> None:
    values = {"send_at": send_at, "sent_at": sent_at, "last_error": last_error}
    kept = redact_secret_links(message.text)
    if send_at is None and kept != message.text:
        values["text_ciphertext"] = keyring.encrypt(kept)
    # The claim of this message may have expired. Only the latest claim may store its result.
    is_claimed = Mail.id == message.id, Mail.tries == message.tries
    # A message that was given up during the attempt is not queued again.
    is_queued = () if send_at is None else (Mail.send_at.is_not(None),)
    session.execute(build_bulk_update(Mail).where(*is_claimed, *is_queued).values(values))


def encrypt_plaintext_emails(
    *, session: Session, keyring: Keyring, includes_tried: bool, commit_batch: Callable[[], None]
) -> int:
    """Encrypt queued messages that older releases stored in plain text.

    Return the number of encrypted messages. A worker with an older release may be sending messages
    that were attempted before. Set `includes_tried` to encrypt these messages as well, when no such
    worker is left.
    """
    is_free = true() if includes_tried else or_(Mail.tries == 0, Mail.next_try_at.is_(None))
    some = (
        select(Mail.id, Mail.text, Mail.next_try_at)
        .where(Mail.text != "", is_free)
        .order_by(Mail.id)
        .limit(_BATCH_SIZE)
        .with_for_update(skip_locked=True)
    )
    total = 0
    while rows := session.execute(some).all():
        for row in rows:
            is_waiting = row.next_try_at is not None
            text = row.text if is_waiting else redact_secret_links(row.text)
            values = {
                "text_ciphertext": keyring.encrypt(text),
                "send_at": row.next_try_at,
                "text": "",
                "next_try_at": None,
            }
            session.execute(build_bulk_update(Mail).where(Mail.id == row.id).values(values))
        commit_batch()
        total += len(rows)
    return total


def get_mail_queue_state(*, session: Session, now: datetime) -> QueueState:
    """Return the state of the email queue, reading only queued messages.

    The oldest message waits since it was queued. Messages with failed attempts are failing.
    """
    by_older_releases = is_set(Mail.next_try_at)
    is_queued = MAIL_QUEUE.build_waiting_condition(now, MAIL_HAS_FAILED)
    return read_queue_state(
        or_(is_queued, by_older_releases),
        since=Mail.created_at,
        has_failed=MAIL_HAS_FAILED,
        session=session,
    )


def count_abandoned_emails(*, session: Session) -> int:
    """Return the number of stored messages that were abandoned."""
    is_over = Mail.send_at.is_(None) & Mail.next_try_at.is_(None)
    never_sent = select(func.count()).where(is_over, Mail.sent_at.is_(None))
    return session.scalar(never_sent) or 0
