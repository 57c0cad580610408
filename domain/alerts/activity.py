"""What people did with an alert, and what they wrote about it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.audit.events import Actor
from domain.paging import Page, Slice
from models import AlertNote


class NoteKind(StrEnum):
    """What a line of the activity tells."""

    #: Something that somebody wrote.
    NOTE = "note"
    #: The status that somebody gave the alert.
    STATUS = "status"
    #: Who looks after it from then on; empty for nobody.
    ASSIGNEE = "assignee"


@dataclass(frozen=True, kw_only=True)
class ActivityView:
    """A line of an alert's activity."""

    id: int
    kind: NoteKind
    user_name: str
    text: str
    created_at: datetime


def note(
    alert_id: int, kind: NoteKind, text: str, *, by: Actor, session: Session, now: datetime
) -> None:
    """Write down what somebody did with an alert."""
    session.add(
        AlertNote(
            alert_id=alert_id,
            user_id=by.id,
            user_name=by.name,
            kind=kind.value,
            text=text,
            created_at=now,
        )
    )


def list_activity(alert_id: int, part: Slice, *, session: Session) -> Page[ActivityView]:
    """Return a part of what people did with an alert, the newest first."""
    statement = (
        select(AlertNote)
        .where(AlertNote.alert_id == alert_id)
        .order_by(AlertNote.id.desc())
        .limit(part.size + 1)
    )
    if part.before is not None:
        statement = statement.where(AlertNote.id < part.before)
    rows = session.scalars(statement).all()
    items = tuple(
        ActivityView(
            id=row.id,
            kind=NoteKind(row.kind),
            user_name=row.user_name,
            text=row.text,
            created_at=row.created_at,
        )
        for row in rows[: part.size]
    )
    return Page(items=items, next_before=items[-1].id if items and len(rows) > part.size else None)
