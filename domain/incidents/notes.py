"""Comments of users on an incident, in Markdown.

Internal comments are for members from Reporter up, as in GitLab; others with a custom role that
shows them incidents do not see them.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.accounts.roles import Role
from domain.audit.events import Actor
from domain.errors import ForbiddenError, NotFoundError
from domain.incidents.fields import checked_note
from domain.incidents.rows import get_incident_id
from domain.incidents.timeline import (
    EntryKind,
    NewEntry,
    TimelineEntry,
    add_entry,
    entry_of,
)
from domain.projects.views import ProjectView
from models import IncidentNote


@dataclass(frozen=True, kw_only=True)
class NoteKey:
    """Which comment is meant."""

    #: The number of the incident.
    iid: int
    note_id: int


@dataclass(frozen=True, kw_only=True)
class NoteText:
    """What a user writes, and for whom; what is None stays as it is."""

    text: str | None = None
    is_internal: bool | None = None


def sees_internal(project: ProjectView) -> bool:
    """Return whether the viewer of a project sees internal comments."""
    return project.role is not None and project.role >= Role.REPORTER


def get_note(project: ProjectView, key: NoteKey, *, session: Session) -> TimelineEntry:
    """Return an entry of the timeline, or raise NotFoundError."""
    return entry_of(_get(project, key, session=session))


def create_note(
    project: ProjectView,
    iid: int,
    new: NoteText,
    *,
    by: Actor,
    session: Session,
    now: datetime,
) -> TimelineEntry:
    """Add a comment; raise InvalidError, NotFoundError or ForbiddenError."""
    note, is_internal = checked_note(new.text or ""), bool(new.is_internal)
    if is_internal and not sees_internal(project):
        raise _not_internal()
    incident_id = get_incident_id(project.id, iid, session=session)
    entry = NewEntry(
        incident_id=incident_id, kind=EntryKind.NOTE, text=note, is_internal=is_internal
    )
    return entry_of(add_entry(entry, by=by, session=session, now=now))


def change_note(
    project: ProjectView,
    key: NoteKey,
    new: NoteText,
    *,
    by: Actor,
    session: Session,
    now: datetime,
) -> TimelineEntry:
    """Change a comment's text, or whether it is internal; what is None stays."""
    row = _get_own(project, key, by=by, session=session)
    note = row.text if new.text is None else checked_note(new.text)
    if new.is_internal and not sees_internal(project):
        raise _not_internal()
    if note != row.text:
        row.text, row.updated_at = note, now
    if new.is_internal is not None:
        row.is_internal = new.is_internal
    session.flush()
    return entry_of(row)


def delete_note(project: ProjectView, key: NoteKey, *, by: Actor, session: Session) -> None:
    """Delete a comment."""
    row = _get_own(project, key, by=by, session=session)
    session.execute(delete(IncidentNote).where(IncidentNote.id == row.id))


def _get(project: ProjectView, key: NoteKey, *, session: Session) -> IncidentNote:
    incident_id = get_incident_id(project.id, key.iid, session=session)
    row = session.scalars(
        select(IncidentNote).where(
            IncidentNote.incident_id == incident_id, IncidentNote.id == key.note_id
        )
    ).one_or_none()
    if row is None or (row.is_internal and not sees_internal(project)):
        message = f"Note {key.note_id} not found on incident {key.iid}."
        raise NotFoundError(message)
    return row


def _get_own(project: ProjectView, key: NoteKey, *, by: Actor, session: Session) -> IncidentNote:
    """Return a comment that the user may change: their own, or any for a Maintainer."""
    row = _get(project, key, session=session)
    if row.kind != EntryKind.NOTE.value:
        message = "Entries about changes of the incident cannot be changed."
        raise ForbiddenError(message)
    if row.user_id != by.id and not project.can_maintain:
        message = "You can change your own comments; Maintainers can change all."
        raise ForbiddenError(message)
    return row


def _not_internal() -> ForbiddenError:
    return ForbiddenError("Internal comments need the Reporter role.")
