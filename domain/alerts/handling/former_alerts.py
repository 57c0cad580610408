"""Tells from former alerts with the same fingerprint how often it came, and what was noted then.

Every query is bounded, whatever is stored: by the index on the fingerprint, and by a few alerts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import NoteKind
from domain.alerts.storing.lifecycle import RESOLVED
from models import Alert, AlertNote

#: So many are counted; of more it is said that there are more.
MOST_COUNTED = 20
_LONGEST_NOTE = 200


@dataclass(frozen=True, kw_only=True)
class FormerNote:
    """What somebody wrote about a former alert, or that somebody resolved it."""

    iid: int
    #: Empty if the account was deleted.
    user_name: str
    #: The beginning on one line; None if the alert was only resolved by hand.
    text: str | None


@dataclass(frozen=True, kw_only=True)
class FormerAlerts:
    """The former alerts with the fingerprint of an alert."""

    count: int
    #: Whether there are more than were counted.
    has_more: bool
    #: The latest of them.
    last_iid: int
    last_started_at: datetime
    note: FormerNote | None

    @property
    def times(self) -> str:
        """How often, in words."""
        if self.has_more:
            return f"more than {self.count} times"
        return {1: "once", 2: "twice"}.get(self.count, f"{self.count} times")


def former_alerts(alert_id: int, *, session: Session) -> FormerAlerts | None:
    """Return what is known of former alerts; None if it is the first, or is never grouped."""
    of = select(Alert.project_id, Alert.fingerprint).where(Alert.id == alert_id)
    found = session.execute(of).first()
    if found is None or found.fingerprint is None:
        return None
    # `+ 0` leaves the planner only the indexes that begin with the fingerprint (migration 0051).
    rows = session.execute(
        select(Alert.id, Alert.iid, Alert.started_at)
        .where(
            Alert.fingerprint == found.fingerprint,
            Alert.project_id + 0 == found.project_id,
            Alert.id < alert_id,
        )
        .order_by(Alert.project_id.desc(), Alert.id.desc())
        .limit(MOST_COUNTED + 1)
    ).all()
    if not rows:
        return None
    counted = rows[:MOST_COUNTED]
    return FormerAlerts(
        count=len(counted),
        has_more=len(rows) > MOST_COUNTED,
        last_iid=rows[0].iid,
        last_started_at=rows[0].started_at,
        note=_last_note({row.id: row.iid for row in counted}, session=session),
    )


def _last_note(iids: dict[int, int], *, session: Session) -> FormerNote | None:
    """Return the latest note about these alerts, else who resolved the latest by hand."""
    row = _latest(tuple(iids), NoteKind.NOTE, session=session)
    if row is not None:
        return FormerNote(iid=iids[row.alert_id], user_name=row.user_name, text=_short(row.text))
    row = _latest(tuple(iids), NoteKind.STATUS, session=session)
    if row is None or row.text != RESOLVED or not row.user_name:
        return None
    return FormerNote(iid=iids[row.alert_id], user_name=row.user_name, text=None)


def _latest(ids: Sequence[int], kind: NoteKind, *, session: Session) -> AlertNote | None:
    # By the alert first: in the order of ids alone Postgres could walk the whole table.
    return session.scalar(
        select(AlertNote)
        .where(
            AlertNote.alert_id.in_(ids), AlertNote.kind == kind.value, AlertNote.changes.is_(None)
        )
        .order_by(AlertNote.alert_id.desc(), AlertNote.id.desc())
        .limit(1)
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_NOTE else f"{line[: _LONGEST_NOTE - 1].rstrip()}…"
