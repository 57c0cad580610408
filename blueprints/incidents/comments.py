"""Comments on an incident: written, changed and deleted."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.listing.queries import LARGEST_IID
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError
from domain.incidents import note_actions as actions
from domain.incidents.types import IncidentNoteChange, NewIncidentNote
from domain.projects.views import ProjectView
from domain.types.reading import read_body
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.refusals import refusals_shown

incident_comments = PageBlueprint(
    "incident_comments",
    __name__,
    url_prefix=f"/<names:project_path>/-/incidents/<int(max={LARGEST_IID}):iid>/notes",
)
_ONE = f"/<int(max={LARGEST_ID}):note_id>"


@incident_comments.post("")
@permitted("incident_notes.create")
def write(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a comment."""
    given = {"body": request.form.get("text", ""), "internal": "internal" in request.form}
    with refusals_shown(InvalidError):
        actions.create_note(work(), project, iid, read_body(NewIncidentNote, given))
    return _to_timeline(project, iid)


@incident_comments.post(f"{_ONE}/edit")
@permitted("incident_notes.change")
def edit(project: ProjectView, iid: int, note_id: int) -> ResponseReturnValue:
    """Change the text of a comment."""
    given = {"body": request.form.get("text", "")}
    with refusals_shown(InvalidError):
        actions.change_note(work(), project, iid, note_id, read_body(IncidentNoteChange, given))
    return _to_timeline(project, iid)


@incident_comments.post(f"{_ONE}/delete")
@permitted("incident_notes.delete")
def delete(project: ProjectView, iid: int, note_id: int) -> ResponseReturnValue:
    """Delete a comment."""
    actions.delete_note(work(), project, iid, note_id)
    flash("Comment deleted.")
    return _to_timeline(project, iid)


def _to_timeline(project: ProjectView, iid: int) -> ResponseReturnValue:
    url = url_for("incidents.show", project_path=project.path, iid=iid, _anchor="timeline")
    return redirect(url)
