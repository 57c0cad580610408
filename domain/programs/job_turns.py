"""Turns of periodic jobs: of several workers, the first in each period runs the job."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.database.rows import insert_into
from models import JobTurn

#: The job that shows every minute that a background worker is running.
WORKER_HEARTBEAT = "pulse"
#: The job that removes what has expired.
PRUNE = "prune"
#: Not a job, but when it was last noticed that a clock had been ahead.
CLOCK_CORRECTION = "clock correction"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def last_turn(name: str, *, session: Session) -> datetime | None:
    """Return the start of the period of the last turn; None if there was none."""
    return session.scalar(select(JobTurn.taken_at).where(JobTurn.name == name))


def record_turn(name: str, *, session: Session, now: datetime) -> None:
    """Record that something happens now, whoever else does it."""
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=now)
    session.execute(
        statement.on_conflict_do_update(index_elements=[JobTurn.name], set_={"taken_at": now})
    )


def claim_turn(name: str, *, period: timedelta, session: Session, now: datetime) -> bool:
    """Claim the turn of the current period; return whether it was free."""
    begins_at = now - (now - _EPOCH) % period
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=begins_at)
    taken = session.scalar(
        statement.on_conflict_do_update(
            index_elements=[JobTurn.name],
            set_={"taken_at": begins_at},
            where=or_(
                JobTurn.taken_at < begins_at,
                # A turn far in the future was taken by a host with a wrong clock; it is ignored.
                JobTurn.taken_at > begins_at + period,
            ),
        ).returning(JobTurn.name)
    )
    return taken is not None
