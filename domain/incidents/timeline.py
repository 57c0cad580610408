"""The timeline of an incident: comments of users, and what became of the incident."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.audit.events import Actor
from domain.database.paging import Page, Slice
from domain.incidents.fields import Person
from models import IncidentNote

#: An entry names so many alerts, and counts the others.
MOST_NAMED = 20


class EntryKind(StrEnum):
    """The kind of an entry."""

    #: A comment that a user wrote.
    NOTE = "note"
    OPENED = "opened"
    #: New alerts with a fingerprint that the incident holds, or of a rule that opens too many.
    JOINED = "joined"
    #: Alerts that a user linked or unlinked.
    LINKED = "linked"
    UNLINKED = "unlinked"
    STATUS = "status"
    SEVERITY = "severity"
    #: The text is the user name.
    ASSIGNED = "assigned"
    UNASSIGNED = "unassigned"
    TITLE = "title"
    DESCRIPTION = "description"
    #: Whether it is closed when its alerts are resolved.
    CLOSING = "closing"


class EntryFilter(StrEnum):
    """Which entries a list has; the values are those of GitLab's API."""

    ALL = "all_notes"
    COMMENTS = "only_comments"
    ACTIVITY = "only_activity"


@dataclass(frozen=True, kw_only=True)
class NewEntry:
    """An entry to be stored."""

    incident_id: int
    kind: EntryKind
    text: str = ""
    details: Mapping[str, Any] | None = None
    is_internal: bool = False


@dataclass(frozen=True, kw_only=True)
class TimelineEntry:
    """An entry of the timeline."""

    id: int
    incident_id: int
    kind: EntryKind
    #: None for what rules and commands did.
    user: Person | None
    text: str
    details: Mapping[str, Any]
    is_internal: bool
    created_at: datetime
    updated_at: datetime

    @property
    def is_comment(self) -> bool:
        """Return whether a user wrote it."""
        return self.kind is EntryKind.NOTE

    @property
    def is_edited(self) -> bool:
        """Return whether the comment was changed after it was written."""
        return self.updated_at > self.created_at


def alerts_in(numbers: Sequence[int]) -> dict[str, Any]:
    """Return the details of an entry about these alerts."""
    return {"alerts": list(numbers[:MOST_NAMED]), "count": len(numbers)}


def add_entries(
    entries: Iterable[NewEntry], *, by: Actor | None, session: Session, now: datetime
) -> None:
    """Store entries; without an actor they are the service's own."""
    rows = [_values(entry, by, now) for entry in entries]
    if rows:
        session.execute(insert(IncidentNote), rows)


def add_entry(
    entry: NewEntry, *, by: Actor | None, session: Session, now: datetime
) -> IncidentNote:
    """Store one entry, and return its row to the modules beside this."""
    row = IncidentNote(**_values(entry, by, now))
    session.add(row)
    session.flush()  # to get the id
    return row


def _values(entry: NewEntry, by: Actor | None, now: datetime) -> dict[str, Any]:
    return {
        "incident_id": entry.incident_id,
        "user_id": by.id if by else None,
        "user_name": by.name if by else "",
        "kind": entry.kind.value,
        "text": entry.text,
        "details": dict(entry.details or {}),
        "is_internal": entry.is_internal,
        "created_at": now,
        "updated_at": now,
    }


def list_entries(
    incident_id: int,
    part: Slice,
    *,
    shows_internal: bool,
    which: EntryFilter = EntryFilter.ALL,
    is_oldest_first: bool = False,
    session: Session,
) -> Page[TimelineEntry]:
    """Return a page of the timeline, the newest first; `part.before` is where it goes on."""
    wanted = select(IncidentNote).where(IncidentNote.incident_id == incident_id)
    if not shows_internal:
        wanted = wanted.where(IncidentNote.is_internal.is_(False))
    if which is not EntryFilter.ALL:
        is_comment = IncidentNote.kind == EntryKind.NOTE.value
        wanted = wanted.where(is_comment if which is EntryFilter.COMMENTS else ~is_comment)
    key = IncidentNote.id
    if part.before is not None:
        wanted = wanted.where(key > part.before if is_oldest_first else key < part.before)
    order = key.asc() if is_oldest_first else key.desc()
    rows = session.scalars(wanted.order_by(order).limit(part.size + 1)).all()
    items = tuple(map(entry_of, rows[: part.size]))
    return Page(items=items, next_before=items[-1].id if len(rows) > part.size else None)


def entry_of(row: IncidentNote) -> TimelineEntry:
    """Return the view of an entry."""
    return TimelineEntry(
        id=row.id,
        incident_id=row.incident_id,
        kind=EntryKind(row.kind),
        user=Person(row.user_id, row.user_name) if row.user_name else None,
        text=row.text,
        details=row.details,
        is_internal=row.is_internal,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
