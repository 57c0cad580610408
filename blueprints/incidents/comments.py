"""Comments on an incident: written, changed and deleted."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.alerts.listing.queries import LARGEST_IID
from domain.audit.events import Actor
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError
from domain.incidents.events import incident_changed
from domain.incidents.notes import NoteKey, NoteText, change_note, create_note, delete_note
from domain.incidents.rows import get_incident
from domain.projects.views import ProjectView
from web.access.marks import get_current_user, project_member
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.services import now

incident_comments = PageBlueprint(
    "incident_comments",
    __name__,
    url_prefix=f"/<names:project_path>/-/incidents/<int(max={LARGEST_IID}):iid>/notes",
)
_ONE = f"/<int(max={LARGEST_ID}):note_id>"


@incident_comments.post("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def write(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a comment."""
    text = NoteText(text=request.form.get("text", ""), is_internal="internal" in request.form)
    try:
        made = create_note(project, iid, text, by=_me(), session=db.session(), now=now())
    except InvalidError as error:
        flash(str(error), "error")
    else:
        _record(project, iid, "created", made.id)
    return _to_timeline(project, iid)


@incident_comments.post(f"{_ONE}/edit")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def edit(project: ProjectView, iid: int, note_id: int) -> ResponseReturnValue:
    """Change the text of a comment."""
    key, text = NoteKey(iid=iid, note_id=note_id), NoteText(text=request.form.get("text", ""))
    try:
        change_note(project, key, text, by=_me(), session=db.session(), now=now())
    except InvalidError as error:
        flash(str(error), "error")
    else:
        _record(project, iid, "changed", note_id)
    return _to_timeline(project, iid)


@incident_comments.post(f"{_ONE}/delete")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def delete(project: ProjectView, iid: int, note_id: int) -> ResponseReturnValue:
    """Delete a comment."""
    key = NoteKey(iid=iid, note_id=note_id)
    delete_note(project, key, by=_me(), session=db.session())
    _record(project, iid, "deleted", note_id)
    flash("Comment deleted.")
    return _to_timeline(project, iid)


def _record(project: ProjectView, iid: int, change_of_note: str, note_id: int) -> None:
    incident = get_incident(project.id, iid, session=db.session())
    event = incident_changed(incident, project.path, comment=change_of_note, note_id=note_id)
    record_event(event)


def _me() -> Actor:
    return Actor(id=get_current_user().id, name=get_current_user().username)


def _to_timeline(project: ProjectView, iid: int) -> ResponseReturnValue:
    url = url_for("incidents.show", project_path=project.path, iid=iid, _anchor="timeline")
    return redirect(url)
