"""The activity of an alert: actions and notes of users, and changes made by reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, insert, select
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.storing.reported_fields import SHOWN_COLUMNS
from domain.audit.events import Actor
from domain.database.paging import Page, Slice
from models import AlertNote

#: How the words begin that say from where the service itself acted.
BY_ITSELF = "by itself"


class NoteKind(StrEnum):
    """The kind of an entry of the activity."""

    #: A text that a user wrote.
    NOTE = "note"
    #: A status that a user gave the alert.
    STATUS = "status"
    #: The new assignee; an empty text for nobody.
    ASSIGNEE = "assignee"
    #: Whether and why the user, or a channel, was or was not paged: a sentence without its subject.
    PAGE = "page"
    #: Why nobody was paged, or is not paged yet: a sentence.
    ESCALATION = "escalation"
    #: Fields that a report changed. A trigger stores it as a NOTE with changes (migration 0051).
    CHANGE = "change"


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """A field of an alert before and after a report; None for no value."""

    #: The name that pages show.
    field: str
    old: str | None
    new: str | None
    #: Whether the severity became worse.
    is_rise: bool = False


@dataclass(frozen=True, kw_only=True)
class ActivityView:
    """An entry of an alert's activity."""

    id: int
    kind: NoteKind
    #: None for changes by a report, and for users whose account was deleted.
    user_id: int | None
    user_name: str
    text: str
    created_at: datetime
    #: From where the user acted if it was no page and no token, in words as in a sentence.
    via: str | None = None
    changes: tuple[FieldChange, ...] = ()

    @property
    def author(self) -> Mapping[str, object] | None:
        """Who it is of; None for a change by a report or by the command line."""
        has_author = self.kind is not NoteKind.CHANGE and self.user_name
        return {"id": self.user_id, "username": self.user_name} if has_author else None

    @property
    def is_by_itself(self) -> bool:
        """Whether the service acted, and nobody else."""
        return bool(self.via and self.via.startswith(BY_ITSELF))


def add_entry(
    alert_id: int, kind: NoteKind, text: str, *, by: Actor | None, session: Session, now: datetime
) -> AlertNote:
    """Add an entry to the activity of an alert, and return its row to the modules beside this.

    An entry without an actor is of the command line.
    """
    row = AlertNote(
        alert_id=alert_id,
        user_id=by.id if by else None,
        user_name=by.name if by else "",
        kind=kind.value,
        text=text,
        created_at=now,
    )
    session.add(row)
    return row


@dataclass(frozen=True, kw_only=True)
class NewEntry:
    """An entry that the service writes by itself, about a user if there is one."""

    alert_id: int
    kind: NoteKind
    text: str
    user_id: int | None = None
    user_name: str = ""


def add_entries(entries: Sequence[NewEntry], *, session: Session, now: datetime) -> None:
    """Add entries to the activities of many alerts at once."""
    if entries:
        rows = [{**vars(entry), "kind": entry.kind.value, "created_at": now} for entry in entries]
        session.execute(insert(AlertNote), rows)


def list_activity(alert_id: int, part: Slice, *, session: Session) -> Page[ActivityView]:
    """Return a page of an alert's activity, the newest first."""
    return _page(select(AlertNote).where(AlertNote.alert_id == alert_id), part, session=session)


def list_notes(alert_id: int, part: Slice, *, session: Session) -> Page[ActivityView]:
    """Return a page of the notes that users wrote about an alert, the newest first."""
    written = select(AlertNote).where(
        AlertNote.alert_id == alert_id,
        AlertNote.kind == NoteKind.NOTE.value,
        AlertNote.changes.is_(None),
    )
    return _page(written, part, session=session)


def _page(statement: Select[AlertNote], part: Slice, *, session: Session) -> Page[ActivityView]:
    if part.before is not None:
        statement = statement.where(AlertNote.id < part.before)
    newest = statement.order_by(AlertNote.id.desc()).limit(part.size + 1)
    rows = session.scalars(newest).all()
    items = tuple(map(view_of, rows[: part.size]))
    return Page(items=items, next_before=items[-1].id if items and len(rows) > part.size else None)


def view_of(row: AlertNote) -> ActivityView:
    """Return the view of an entry."""
    return ActivityView(
        id=row.id,
        kind=NoteKind(row.kind) if row.changes is None else NoteKind.CHANGE,
        user_id=row.user_id,
        user_name=row.user_name,
        text=row.text,
        created_at=row.created_at,
        via=row.via,
        changes=_read_changes(row.changes or {}),
    )


def _read_changes(changes: Mapping[str, list[Any]]) -> tuple[FieldChange, ...]:
    return tuple(_changed(name, *changes[name]) for name in SHOWN_COLUMNS if name in changes)


def _changed(name: str, old: Any, new: Any) -> FieldChange:
    if name == "severity":
        words = SEVERITIES[old].value, SEVERITIES[new].value
        return FieldChange(field="severity", old=words[0], new=words[1], is_rise=new < old)
    return FieldChange(field=name.replace("_", " "), old=old, new=new)
