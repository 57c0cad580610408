"""Functions that lock escalations in ID order, which prevents deadlocks.

Lock escalations before the recipients of pages, and recipients before pages.
"""

from datetime import datetime

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update
from models import Escalation


def _select_for_update(*which: ColumnElement[bool]) -> Select[int]:
    return select(Escalation.id).where(*which).order_by(Escalation.id).with_for_update()


def lock_escalations(*which: ColumnElement[bool], session: Session) -> None:
    """Lock escalations until the transaction ends."""
    session.execute(_select_for_update(*which)).all()


def schedule_escalations_now(*which: ColumnElement[bool], session: Session, now: datetime) -> None:
    """Make escalations due immediately if they are due later."""
    # The database locks the rows in ID order before it changes them.
    locked = _select_for_update(*which, Escalation.next_at > now).cte("locked")
    rows = build_bulk_update(Escalation).where(Escalation.id.in_(locked.select()))
    session.execute(rows.values(next_at=now))
