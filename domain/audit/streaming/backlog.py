"""Bounds what waits for destinations: by age, by number, and for destinations that were removed."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, select, update
from sqlalchemy.orm import Session

from models import AuditStream, AuditStreamEntry

#: The most events that wait for one destination; the oldest are given up first.
MOST_ENTRIES = 1_000_000
_SLICE = 500


def drop_old_entries(
    *,
    session: Session,
    before: datetime,
    now: datetime,
    between: Callable[[], None],
    most: int = MOST_ENTRIES,
) -> int:
    """Give up events that happened before a moment, and the oldest of too many; count them.

    The count of each destination is stored with it, so that nothing disappears silently.
    """
    total = 0
    for stream_id in session.scalars(select(AuditStream.id)).all():
        mine = AuditStreamEntry.stream_id == stream_id
        is_old = mine & (AuditStreamEntry.created_at < before)
        total += _drop(stream_id, is_old, session=session, now=now, between=between)
        newest_surplus = session.scalar(
            select(AuditStreamEntry.id)
            .where(mine)
            .order_by(AuditStreamEntry.id.desc())
            .offset(most)
            .limit(1)
        )
        if newest_surplus is not None:
            surplus = mine & (AuditStreamEntry.id <= newest_surplus)
            total += _drop(stream_id, surplus, session=session, now=now, between=between)
    return total


def _drop(
    stream_id: int,
    condition: ColumnElement[bool],
    *,
    session: Session,
    now: datetime,
    between: Callable[[], None],
) -> int:
    total = 0
    while count := _delete_slice(condition, session):
        session.execute(
            update(AuditStream)
            .where(AuditStream.id == stream_id)
            .values(dropped=AuditStream.dropped + count, last_dropped_at=now)
            .execution_options(synchronize_session=False)
        )
        between()
        total += count
    return total


def remove_orphans(*, session: Session, between: Callable[[], None]) -> int:
    """Remove the events of destinations that were removed; return how many there were."""
    total = 0
    while count := _delete_slice(
        ~exists().where(AuditStream.id == AuditStreamEntry.stream_id), session
    ):
        between()
        total += count
    return total


def _delete_slice(condition: ColumnElement[bool], session: Session) -> int:
    """Delete some of the oldest entries, and return how many."""
    oldest = select(AuditStreamEntry.id).where(condition).order_by(AuditStreamEntry.id)
    keys = session.scalars(oldest.limit(_SLICE)).all()
    if keys:
        session.execute(
            delete(AuditStreamEntry)
            .where(AuditStreamEntry.id.in_(keys))
            .execution_options(synchronize_session=False)
        )
    return len(keys)
