"""Notes of users about an alert, in plain text."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import NoteKind, add_entry
from domain.alerts.reading.text import storable
from domain.audit.events import Actor
from domain.errors import InvalidError, NotFoundError
from models import Alert

LONGEST_NOTE = 10_000


def add_note(
    project_id: int, iid: int, text: str, *, by: Actor, session: Session, now: datetime
) -> None:
    """Add a note to an alert; raise InvalidError or NotFoundError."""
    checked = _checked(text)
    alert_id = session.scalar(
        select(Alert.id).where(Alert.project_id == project_id, Alert.iid == iid)
    )
    if alert_id is None:
        message = f"Alert {iid} not found in this project."
        raise NotFoundError(message)
    add_entry(alert_id, NoteKind.NOTE, checked, by=by, session=session, now=now)


def _checked(text: str) -> str:
    lines = storable(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not lines:
        message = "Enter a note."
        raise InvalidError(message, field="text")
    if len(lines) > LONGEST_NOTE:
        message = f"A note has at most {LONGEST_NOTE:,} characters; this one has {len(lines):,}."
        raise InvalidError(message, field="text")
    return lines
