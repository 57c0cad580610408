"""/api/v4/projects/:id/incidents/:iid/notes: comments on an incident, and what became of it."""

from flask import Blueprint

from domain.alerts.listing.queries import LARGEST_IID
from domain.audit.events import Actor
from domain.database.paging import LARGEST_ID
from domain.incidents.events import incident_changed
from domain.incidents.notes import (
    NoteKey,
    change_note,
    create_note,
    delete_note,
    get_note,
    sees_internal,
)
from domain.incidents.rows import get_incident, get_incident_id
from domain.incidents.timeline import TimelineEntry, list_entries
from domain.projects.views import ProjectView
from web.api.operations import Found, operation
from web.api.schemas.incidents.incident_notes import (
    IncidentNote,
    IncidentNoteBody,
    IncidentNoteChange,
    IncidentNoteQuery,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now

incident_notes = Blueprint(
    "incident_notes",
    __name__,
    url_prefix=f"/projects/<path:reference>/incidents/<int(max={LARGEST_IID}):iid>/notes",
)
_ONE = f"/<int(max={LARGEST_ID}):note_id>"


@incident_notes.get("")
@operation("incident_notes.index", query=IncidentNoteQuery, returns=IncidentNote)
def index(project: ProjectView, iid: int, query: IncidentNoteQuery) -> Found[IncidentNote]:
    """List the timeline of an incident."""
    page = list_entries(
        get_incident_id(project.id, iid, session=db.session()),
        query.part,
        shows_internal=sees_internal(project),
        which=query.activity_filter,
        is_oldest_first=query.sort == "asc",
        session=db.session(),
    )
    return Found.of_page(page, lambda entry: _shown(project, iid, entry))


@incident_notes.get(_ONE)
@operation("incident_notes.show", returns=IncidentNote)
def show(project: ProjectView, iid: int, note_id: int) -> IncidentNote:
    """Show an entry of the timeline."""
    key = NoteKey(iid=iid, note_id=note_id)
    return _shown(project, iid, get_note(project, key, session=db.session()))


@incident_notes.post("")
@operation("incident_notes.create", body=IncidentNoteBody, returns=IncidentNote, status=201)
def create(project: ProjectView, iid: int, body: IncidentNoteBody, actor: Actor) -> IncidentNote:
    """Comment on an incident."""
    made = create_note(project, iid, body.note, by=actor, session=db.session(), now=now())
    _record(project, iid, "created", made.id)
    return _shown(project, iid, made)


@incident_notes.put(_ONE)
@operation("incident_notes.change", body=IncidentNoteChange, returns=IncidentNote)
def change(
    project: ProjectView, iid: int, note_id: int, body: IncidentNoteChange, actor: Actor
) -> IncidentNote:
    """Change a comment; before release 18.0 also whether it is internal."""
    key = NoteKey(iid=iid, note_id=note_id)
    changed = change_note(project, key, body.note, by=actor, session=db.session(), now=now())
    _record(project, iid, "changed", note_id)
    return _shown(project, iid, changed)


@incident_notes.delete(_ONE)
@operation("incident_notes.delete")
def delete(project: ProjectView, iid: int, note_id: int, actor: Actor) -> None:
    """Delete a comment."""
    key = NoteKey(iid=iid, note_id=note_id)
    delete_note(project, key, by=actor, session=db.session())
    _record(project, iid, "deleted", note_id)


def _record(project: ProjectView, iid: int, change_of_note: str, note_id: int) -> None:
    incident = get_incident(project.id, iid, session=db.session())
    record_event(incident_changed(incident, project.path, comment=change_of_note, note_id=note_id))


def _shown(project: ProjectView, iid: int, entry: TimelineEntry) -> IncidentNote:
    return IncidentNote.of(entry, project_id=project.id, iid=iid)
