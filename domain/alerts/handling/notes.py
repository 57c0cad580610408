"""Notes of users about an alert, in plain text."""

from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.handling.activity import ActivityView, NoteKind, add_entry, view_of
from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.reading.text import storable
from domain.audit.events import Actor
from domain.errors import InvalidError

LONGEST_NOTE = 10_000


def add_note(
    project_id: int, iid: int, text: str, *, by: Actor, session: Session, now: datetime
) -> ActivityView:
    """Add a note to an alert; raise InvalidError or NotFoundError."""
    checked = _checked(text)
    alert_id = get_alert_id(project_id, iid, session=session)
    row = add_entry(alert_id, NoteKind.NOTE, checked, by=by, session=session, now=now)
    session.flush()  # to get the id
    return view_of(row)


def _checked(text: str) -> str:
    lines = storable(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not lines:
        message = "Enter a note."
        raise InvalidError(message, field="body")
    if len(lines) > LONGEST_NOTE:
        message = f"A note has at most {LONGEST_NOTE:,} characters; this one has {len(lines):,}."
        raise InvalidError(message, field="body")
    return lines
