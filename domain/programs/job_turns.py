"""Periodic jobs that one of several workers does: who comes first in a period takes the turn."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from models import JobTurn

#: What a background worker does every minute, so that others see that it works.
PULSE = "pulse"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def last_turn(name: str, *, session: Session) -> datetime | None:
    """Return when the period began in which a turn was last taken; None if never."""
    return session.scalar(select(JobTurn.taken_at).where(JobTurn.name == name))


def take_turn(name: str, *, period: timedelta, session: Session, now: datetime) -> bool:
    """Take the turn of the present period; return whether it was still to be had."""
    begins_at = now - (now - _EPOCH) % period
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=begins_at)
    taken = session.scalar(
        statement.on_conflict_do_update(
            index_elements=[JobTurn.name],
            set_={"taken_at": begins_at},
            where=or_(
                JobTurn.taken_at < begins_at,
                # Whoever took that one had a clock far ahead of ours; nobody shall wait for it.
                JobTurn.taken_at > begins_at + period,
            ),
        ).returning(JobTurn.name)
    )
    return taken is not None
