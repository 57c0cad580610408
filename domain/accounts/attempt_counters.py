"""Attempt counters in the database, shared by all processes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, delete, or_, update
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import TooManyAttemptsError
from domain.core.keyring import Keyring
from models import AttemptCount


@dataclass(frozen=True, kw_only=True)
class AttemptLimit:
    """The maximum number of attempts by one subject within a time window."""

    subject: str
    attempts: int
    window: timedelta


def consume_attempt(
    limit: AttemptLimit, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Count an attempt before checking it.

    Counting first prevents concurrent guesses from exceeding the limit. Raise TooManyAttemptsError
    if the limit is exceeded.
    """
    insert = build_session_insert(AttemptCount, session=session).values(
        subject=keyring.compute_digest(limit.subject), count=1, window_ends_at=now + limit.window
    )
    is_over = AttemptCount.window_ends_at <= now
    statement = insert.on_conflict_do_update(
        index_elements=[AttemptCount.subject],
        set_={
            "count": case((is_over, 1), else_=AttemptCount.count + 1),
            # A later end means that the window was started while the clock ran ahead.
            "window_ends_at": case(
                (
                    or_(is_over, AttemptCount.window_ends_at > now + limit.window),
                    now + limit.window,
                ),
                else_=AttemptCount.window_ends_at,
            ),
        },
    ).returning(AttemptCount.count, AttemptCount.window_ends_at)
    count, ends_at = session.execute(statement).one()
    if count > limit.attempts:
        seconds = max(1, round((ends_at - now).total_seconds()))
        message = "Too many attempts. Wait a few minutes, then try again."
        raise TooManyAttemptsError(message, retry_after=seconds)


def reset_attempts(limit: AttemptLimit, *, session: Session, keyring: Keyring) -> None:
    """Reset the counter of a subject after a successful attempt."""
    session.execute(
        delete(AttemptCount).where(AttemptCount.subject == keyring.compute_digest(limit.subject))
    )


def refund_attempt(limit: AttemptLimit, *, session: Session, keyring: Keyring) -> None:
    """Subtract one successful attempt from the counter of a subject.

    Failed attempts remain counted. Use this function for subjects that many users share, such as an
    IP address. A successful sign-in by one user must not reset the count of another user who
    guesses passwords.
    """
    session.execute(
        update(AttemptCount)
        .where(
            AttemptCount.subject == keyring.compute_digest(limit.subject), AttemptCount.count > 0
        )
        .values(count=AttemptCount.count - 1)
    )


def claim_single_use_value(
    what: str, *, lifetime: timedelta, session: Session, keyring: Keyring, now: datetime
) -> bool:
    """Claim a single-use value, and return whether this is its first use.

    The claim is stored for `lifetime`. The value must expire within this period.
    """
    limit = AttemptLimit(subject=f"once {what}", attempts=1, window=lifetime)
    try:
        consume_attempt(limit, session=session, keyring=keyring, now=now)
    except TooManyAttemptsError:
        return False
    return True
