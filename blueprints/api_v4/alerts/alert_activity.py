"""/api/v4/projects/:id/alert_management_alerts/:iid: notes, activity and reports of an alert."""

from flask import Blueprint

from domain.alerts.handling.activity import list_activity, list_notes
from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.handling.notes import add_note
from domain.alerts.handling.occurrences import list_occurrences, read_position
from domain.alerts.listing.queries import LARGEST_IID
from domain.audit.events import Actor
from domain.database.paging import Slice, read_cursor
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.alerts.alert_activity import (
    ActivityQuery,
    AlertActivity,
    AlertNote,
    AlertNoteBody,
    AlertOccurrence,
)
from web.extensions import db
from web.services import now

alert_activity = Blueprint(
    "alert_activity",
    __name__,
    url_prefix=f"/projects/<path:reference>/alert_management_alerts/<int(max={LARGEST_IID}):iid>",
)


@alert_activity.get("/notes")
@operation("alert_activity.notes", query=ActivityQuery, returns=AlertNote)
def notes(project: ProjectView, iid: int, query: ActivityQuery) -> Found[AlertNote]:
    """List the notes of users on an alert, newest first."""
    alert_id = get_alert_id(project.id, iid, session=db.session())
    return Found.of_page(list_notes(alert_id, _part(query), session=db.session()), AlertNote.of)


@alert_activity.post("/notes")
@operation("alert_activity.create_note", body=AlertNoteBody, returns=AlertNote, status=201)
def create_note(project: ProjectView, iid: int, body: AlertNoteBody, actor: Actor) -> AlertNote:
    """Add a note to an alert."""
    added = add_note(project.id, iid, body.body, by=actor, session=db.session(), now=now())
    return AlertNote.of(added)


@alert_activity.get("/activity")
@operation("alert_activity.index", query=ActivityQuery, returns=AlertActivity)
def index(project: ProjectView, iid: int, query: ActivityQuery) -> Found[AlertActivity]:
    """List the activity of an alert, newest first."""
    alert_id = get_alert_id(project.id, iid, session=db.session())
    return Found.of_page(
        list_activity(alert_id, _part(query), session=db.session()), AlertActivity.of
    )


@alert_activity.get("/occurrences")
@operation("alert_activity.occurrences", query=ActivityQuery, returns=AlertOccurrence)
def occurrences(project: ProjectView, iid: int, query: ActivityQuery) -> Found[AlertOccurrence]:
    """List the reports of an alert with their deliveries, newest first."""
    alert_id = get_alert_id(project.id, iid, session=db.session())
    position = read_position(query.cursor)
    page = list_occurrences(alert_id, position, size=query.size, session=db.session())
    return Found.of_page(page, AlertOccurrence.of)


def _part(query: ActivityQuery) -> Slice:
    return Slice(size=query.size, before=read_cursor(query.cursor))
