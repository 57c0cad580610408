"""Queries for activity entries about status changes that were not made by reports."""

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import fetch_rows_by_key
from models import AlertNote, User

#: Value of `ActivityEntryKind` for a status that a user set.
_STATUS_KIND = "status"
_STATUS_NOTES = (
    select(
        *(AlertNote.id, AlertNote.alert_id, AlertNote.text, AlertNote.created_at),
        # `author` is the current name of the user, and `user_name` is the name at the time of the
        # note.
        *(AlertNote.user_id, AlertNote.user_name),
        func.coalesce(User.username, AlertNote.user_name).label("author"),
    )
    .outerjoin(User, User.id == AlertNote.user_id)
    .where(AlertNote.kind == _STATUS_KIND)
)


def find_status_changes(
    alert_ids: Collection[int], *, session: Session
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the status notes of alerts in chronological order. Each `text` is a status."""
    found = fetch_rows_by_key(_STATUS_NOTES, AlertNote.alert_id, alert_ids, session=session)
    return sorted(found, key=attrgetter("id"))


def find_last_status_changes(
    alert_ids: Collection[int], *, session: Session
) -> Mapping[int, Row[*tuple[Any, ...]]]:
    """Return the last status note of each alert. Alerts changed only by reports are omitted."""
    return {note.alert_id: note for note in find_status_changes(alert_ids, session=session)}


def has_set_status(alert_id: int, user_id: int, *, session: Session) -> bool:
    """Return whether a user set the latest status of an alert."""
    note = find_last_status_changes([alert_id], session=session).get(alert_id)
    return note is not None and bool(note.user_id == user_id)
