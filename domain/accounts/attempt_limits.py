"""Counts guesses, across all workers, and says when it has been too many."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, delete, update
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from domain.errors import TooManyAttemptsError
from domain.keyring import Keyring
from models import AttemptCount


@dataclass(frozen=True, kw_only=True)
class AttemptLimit:
    """So many attempts for one subject within a window."""

    subject: str
    attempts: int
    window: timedelta


def claim_attempt(
    limit: AttemptLimit, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Count one attempt before it is made, or raise TooManyAttemptsError.

    Counting first means that parallel guesses cannot all slip through the same gap.
    """
    insert = insert_into(AttemptCount, session=session).values(
        subject=keyring.digest(limit.subject), count=1, window_ends_at=now + limit.window
    )
    is_over = AttemptCount.window_ends_at <= now
    statement = insert.on_conflict_do_update(
        index_elements=[AttemptCount.subject],
        set_={
            "count": case((is_over, 1), else_=AttemptCount.count + 1),
            "window_ends_at": case(
                (is_over, now + limit.window), else_=AttemptCount.window_ends_at
            ),
        },
    ).returning(AttemptCount.count, AttemptCount.window_ends_at)
    count, ends_at = session.execute(statement).one()
    if count > limit.attempts:
        seconds = max(1, round((ends_at - now).total_seconds()))
        message = "Too many attempts. Wait a few minutes, then try again."
        raise TooManyAttemptsError(message, retry_after=seconds)


def forget_attempts(limit: AttemptLimit, *, session: Session, keyring: Keyring) -> None:
    """Start counting anew: whoever knows the answer was not guessing."""
    session.execute(
        delete(AttemptCount).where(AttemptCount.subject == keyring.digest(limit.subject))
    )


def give_back_attempt(limit: AttemptLimit, *, session: Session, keyring: Keyring) -> None:
    """Take back the one attempt that was right, and keep the wrong ones before it.

    For what many people share, such as an address: one who may come in must not clear the count
    for one who is guessing.
    """
    session.execute(
        update(AttemptCount)
        .where(AttemptCount.subject == keyring.digest(limit.subject), AttemptCount.count > 0)
        .values(count=AttemptCount.count - 1)
    )


def claim_once(
    what: str, *, lifetime: timedelta, session: Session, keyring: Keyring, now: datetime
) -> bool:
    """Tell whether nobody has used this before, and remember that it is used now.

    For what nobody accepts any more after `lifetime`, because it says itself how old it is.
    """
    limit = AttemptLimit(subject=f"once {what}", attempts=1, window=lifetime)
    try:
        claim_attempt(limit, session=session, keyring=keyring, now=now)
    except TooManyAttemptsError:
        return False
    return True
