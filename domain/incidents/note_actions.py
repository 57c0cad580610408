"""Actions on incident comments, which are written in Markdown.

As in GitLab, internal comments are visible to members with the Reporter role or higher. Members
with a lower role cannot see them, even if a custom role lets them see incidents.
"""

from sqlalchemy import select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.audit.events import EventActor, EventKind
from domain.core.errors import ForbiddenError, NotFoundError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.incidents.listing import get_incident_row
from domain.incidents.timeline import (
    NewTimelineEntry,
    TimelineEntry,
    add_timeline_entry,
    format_timeline_entry,
    list_timeline_entries,
)
from domain.incidents.types import (
    EntryKind,
    IncidentNote,
    IncidentNoteChange,
    IncidentNoteQuery,
    NewIncidentNote,
    validate_comment,
)
from domain.projects.views import ProjectView
from models import IncidentNote as NoteRow


def can_see_internal_comments(project: ProjectView) -> bool:
    """Return whether the viewer of a project can see internal comments."""
    return project.role is not None and project.role >= Role.REPORTER


@read_action("incident_notes.index")
def list_notes(
    work: UnitOfWork, project: ProjectView, iid: int, query: IncidentNoteQuery
) -> ListPage[IncidentNote]:
    """List the timeline entries of an incident.

    Raise NotFoundError if the project has no such incident.
    """
    page = list_timeline_entries(
        get_incident_row(project.id, iid, session=work.session).id,
        query.requested_range,
        shows_internal=can_see_internal_comments(project),
        entry_filter=query.activity_filter,
        is_oldest_first=query.sort == "asc",
        session=work.session,
    )
    return ListPage.from_keyset_page(page, lambda entry: _build_note_resource(project, iid, entry))


@read_action("incident_notes.show")
def show_note(work: UnitOfWork, project: ProjectView, iid: int, note_id: int) -> IncidentNote:
    """Show an entry in the timeline of an incident.

    Raise NotFoundError if there is no such entry.
    """
    return _build_note_resource(project, iid, _get_note(work, project, iid, note_id))


@action("incident_notes.create")
def create_note(
    work: UnitOfWork, project: ProjectView, iid: int, new: NewIncidentNote
) -> IncidentNote:
    """Add a comment to an incident.

    Raise NotFoundError if the project has no such incident, InvalidError if the comment is empty or
    too long, or ForbiddenError if the user may not write internal comments.
    """
    note = validate_comment(new.body)
    _check_internal_allowed(project, new)
    entry = NewTimelineEntry(
        incident_id=get_incident_row(project.id, iid, session=work.session).id,
        kind=EntryKind.NOTE,
        text=note,
        is_internal=bool(new.is_internal),
    )
    by = EventActor(id=work.actor.id, name=work.actor.name) if work.actor.id else None
    row = add_timeline_entry(entry, actor=by, session=work.session, now=work.now)
    _record_event(work, project, iid, row.id, "created")
    return _build_note_resource(project, iid, row)


@action("incident_notes.change")
def change_note(
    work: UnitOfWork, project: ProjectView, iid: int, note_id: int, change: IncidentNoteChange
) -> IncidentNote:
    """Change a comment on an incident.

    Before release 18.0, `internal` can also be changed.

    Raise NotFoundError if there is no such comment, InvalidError if the text is empty or too long,
    or ForbiddenError if the user may not change the comment.
    """
    row = _get_editable_comment(work, project, iid, note_id)
    note = row.text if change.body is None else validate_comment(change.body)
    _check_internal_allowed(project, change)
    if note != row.text:
        row.text, row.updated_at = note, work.now
    if change.is_internal is not None:
        row.is_internal = change.is_internal
    if work.session.is_modified(row):
        work.session.flush()
        _record_event(work, project, iid, note_id, "changed")
    return _build_note_resource(project, iid, row)


@action("incident_notes.delete")
def delete_note(work: UnitOfWork, project: ProjectView, iid: int, note_id: int) -> None:
    """Delete a comment on an incident.

    Raise NotFoundError if there is no such comment, or ForbiddenError if the user may not delete
    it.
    """
    work.session.delete(_get_editable_comment(work, project, iid, note_id))
    _record_event(work, project, iid, note_id, "deleted")


def _check_internal_allowed(
    project: ProjectView, wanted: NewIncidentNote | IncidentNoteChange
) -> None:
    if wanted.is_internal and not can_see_internal_comments(project):
        raise ForbiddenError("You need the Reporter role to write internal comments.")


def _get_note(work: UnitOfWork, project: ProjectView, iid: int, note_id: int) -> NoteRow:
    incident_id = get_incident_row(project.id, iid, session=work.session).id
    row = work.session.scalar(
        select(NoteRow).where(NoteRow.incident_id == incident_id, NoteRow.id == note_id)
    )
    if row is None or (row.is_internal and not can_see_internal_comments(project)):
        raise NotFoundError(f"Note {note_id} not found on incident {iid}.")
    return row


def _get_editable_comment(
    work: UnitOfWork, project: ProjectView, iid: int, note_id: int
) -> NoteRow:
    """Return a comment that the user may change.

    Users may change their own comments, and Maintainers may change all comments.

    Raise NotFoundError if there is no such entry, or ForbiddenError if the user may not change it.
    """
    row = _get_note(work, project, iid, note_id)
    if row.kind != EntryKind.NOTE.value:
        raise ForbiddenError("Only comments can be changed, not other entries in the timeline.")
    if row.user_id != work.actor.id and not project.can_maintain:
        raise ForbiddenError("You need the Maintainer role to change other users' comments.")
    return row


def _build_note_resource(
    project: ProjectView, iid: int, row: NoteRow | TimelineEntry
) -> IncidentNote:
    entry = TimelineEntry.model_validate(row)
    return IncidentNote(
        **get_column_values(entry, IncidentNote),
        body=format_timeline_entry(entry),
        author=entry.user,
        system=not entry.is_comment,
        internal=entry.is_internal,
        confidential=entry.is_internal,
        noteable_id=entry.incident_id,
        noteable_iid=iid,
        project_id=project.id,
    )


def _record_event(
    work: UnitOfWork, project: ProjectView, iid: int, note_id: int, change: str
) -> None:
    incident = get_incident_row(project.id, iid, session=work.session)
    details = {"project": project.path, "iid": iid, "comment": change, "note_id": note_id}
    work.record_audit_event(EventKind.INCIDENT_CHANGED, subject=incident.title, details=details)
