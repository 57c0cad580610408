"""What waits in the outbox, for operators."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models import Mail


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
        ).where(Mail.next_try_at.is_not(None))
    ).one()
    return QueueState(waiting=count, oldest_at=oldest, failing=failing)


def count_given_up(*, session: Session) -> int:
    """Return how many messages of those that are kept were never sent, and will not be."""
    never_sent = select(func.count()).where(Mail.next_try_at.is_(None), Mail.sent_at.is_(None))
    return session.scalar(never_sent) or 0
