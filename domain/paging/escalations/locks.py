"""Locks many escalations in the order of their ids, so that none waits in a circle, and wakes them.

Escalations are locked before recipients of pages, and these before pages.
"""

from datetime import datetime

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from domain.core.database.rows import update_rows
from models import Escalation


def _locked(*which: ColumnElement[bool]) -> Select[int]:
    return select(Escalation.id).where(*which).order_by(Escalation.id).with_for_update()


def lock_escalations(*which: ColumnElement[bool], session: Session) -> None:
    """Lock some escalations until this transaction ends."""
    session.execute(_locked(*which)).all()


def wake_escalations(*which: ColumnElement[bool], session: Session, now: datetime) -> None:
    """Let some escalations look at once what follows, which would do so later."""
    # The database locks each of them, in this order, before it changes it.
    locked = _locked(*which, Escalation.next_at > now).cte("locked")
    rows = update_rows(Escalation).where(Escalation.id.in_(locked.select()))
    session.execute(rows.values(next_at=now))
