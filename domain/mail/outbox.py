"""Letters that wait to be sent: each is written once, and sent by one worker at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from models import Mail

#: So long a worker has a letter for itself; another one takes it if that one has died.
_IN_HAND = timedelta(minutes=10)
#: After the first failure; each further pause is twice as long, up to the longest.
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=2)
#: A letter that nobody took for so long is given up.
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class NewLetter:
    """A letter to one person; `key` is what it is about, and is written about once."""

    key: str
    recipient: str
    subject: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A letter in the hands of a worker."""

    id: int
    key: str
    recipient: str
    subject: str
    text: str
    created_at: datetime
    #: How often it was taken in hand, this time included.
    tries: int


def write_letters(letters: Sequence[NewLetter], *, session: Session, now: datetime) -> int:
    """Put letters into the outbox and return how many of them are new."""
    if not letters:
        return 0
    rows = [
        {
            "key": letter.key,
            "recipient": letter.recipient,
            "subject": letter.subject[:255],
            "text": letter.text,
            "created_at": now,
            "next_try_at": now,
            "tries": 0,
        }
        for letter in letters
    ]
    insert = insert_into(Mail, session=session).values(rows)
    written = session.execute(
        insert.on_conflict_do_nothing(index_elements=[Mail.key]).returning(Mail.id)
    )
    return len(written.all())


def take_letter(*, session: Session, now: datetime) -> Letter | None:
    """Take the letter that has waited longest; nobody else gets it while it is in hand."""
    due = (
        select(Mail.id)
        .where(Mail.next_try_at <= now)
        .order_by(Mail.next_try_at, Mail.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = session.execute(
        update(Mail)
        # A value of its own, or the planner of Postgres might run the question for every row.
        .where(Mail.id.in_(due.cte("due").select()))
        .values(next_try_at=now + _IN_HAND, tries=Mail.tries + 1)
        .returning(
            Mail.id,
            Mail.key,
            Mail.recipient,
            Mail.subject,
            Mail.text,
            Mail.created_at,
            Mail.tries,
        )
        .execution_options(synchronize_session=False)
    ).first()
    return Letter(**row._mapping) if row else None  # noqa: SLF001 - public accessor


def settle_sent(letter: Letter, *, session: Session, now: datetime) -> None:
    """Remember that a letter is sent."""
    _settle(letter, session=session, next_try_at=None, sent_at=now, last_error=None)


def settle_refused(letter: Letter, reason: str, *, session: Session) -> None:
    """Give a letter up that will never be taken; `reason` holds no address and no secret."""
    _settle(letter, session=session, next_try_at=None, sent_at=None, last_error=reason)


def settle_failed(letter: Letter, reason: str, *, session: Session, now: datetime) -> bool:
    """Try a letter again after a pause, and tell whether it will be; after a day it is not."""
    pause = min(_FIRST_PAUSE * 2 ** min(letter.tries - 1, 10), _LONGEST_PAUSE)
    is_hopeful = now + pause - letter.created_at <= _PATIENCE
    next_try_at = now + pause if is_hopeful else None
    _settle(letter, session=session, next_try_at=next_try_at, sent_at=None, last_error=reason)
    return bool(is_hopeful)


def _settle(
    letter: Letter,
    *,
    session: Session,
    next_try_at: datetime | None,
    sent_at: datetime | None,
    last_error: str | None,
) -> None:
    session.execute(
        update(Mail)
        # Whoever had it in hand for too long does not speak for it any more.
        .where(Mail.id == letter.id, Mail.tries == letter.tries)
        .values(next_try_at=next_try_at, sent_at=sent_at, last_error=last_error)
        .execution_options(synchronize_session=False)
    )
