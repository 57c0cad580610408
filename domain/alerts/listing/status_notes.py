"""Reads the statuses that alerts got otherwise than by reports, from their activity."""

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from domain.core.database.rows import rows_of_each
from models import AlertNote, User

#: What `NoteKind` of the activity calls a status that somebody gave.
_STATUS = "status"
_NOTES = (
    select(
        *(AlertNote.id, AlertNote.alert_id, AlertNote.text, AlertNote.created_at),
        # The present name of a user is `author`, and the one at that time `user_name`.
        *(AlertNote.user_id, AlertNote.user_name),
        func.coalesce(User.username, AlertNote.user_name).label("author"),
    )
    .outerjoin(User, User.id == AlertNote.user_id)
    .where(AlertNote.kind == _STATUS)
)


def status_notes(
    alert_ids: Collection[int], *, session: Session
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the notes of alerts whose `text` is a status, in their order."""
    found = rows_of_each(_NOTES, AlertNote.alert_id, alert_ids, session=session)
    return sorted(found, key=attrgetter("id"))


def last_status_notes(
    alert_ids: Collection[int], *, session: Session
) -> Mapping[int, Row[*tuple[Any, ...]]]:
    """Return the last of these notes by alert; one that only reports changed has none."""
    return {note.alert_id: note for note in status_notes(alert_ids, session=session)}


def gave_status(alert_id: int, user_id: int, *, session: Session) -> bool:
    """Return whether a user gave an alert the status that it got last."""
    note = last_status_notes([alert_id], session=session).get(alert_id)
    return note is not None and bool(note.user_id == user_id)
