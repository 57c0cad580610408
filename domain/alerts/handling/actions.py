"""Actions on alerts and their notes."""

from sqlalchemy import delete, select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.formats.base import Reading
from domain.alerts.handling.activity import NoteKind, add_entry, list_activity, list_notes, view_of
from domain.alerts.handling.alert_detail import get_alert, get_alert_id
from domain.alerts.handling.assignments import assign, username_of
from domain.alerts.handling.occurrences import list_occurrences, read_position
from domain.alerts.handling.status import StatusChange, change_status
from domain.alerts.handling.types import (
    ActivityQuery,
    AlertActivity,
    AlertBody,
    AlertDetail,
    AlertNote,
    AlertNoteBody,
    AlertOccurrence,
)
from domain.alerts.listing import queries
from domain.alerts.listing.filters import NOBODY
from domain.alerts.listing.types import Alert, AlertQuery, part_of, shown_alert
from domain.alerts.reading.text import storable
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.base import Found
from domain.projects.views import ProjectView
from models import Alert as AlertRow

LONGEST_NOTE = 10_000


@question("alerts.index")
def list_alerts(work: Work, project: ProjectView, query: AlertQuery) -> Found[Alert]:
    """List the alerts of a project, with filters and sort orders."""
    wanted, part = query.of_project(project.id), part_of(query)
    page = queries.list_alerts(wanted, part, session=work.session)
    return Found.of_page(page, lambda row: shown_alert(Alert, row, work.settings.base_url))


@question("alerts.show")
def show_alert(work: Work, project: ProjectView, iid: int) -> AlertDetail:
    """Show an alert with all its fields."""
    found = get_alert(project.id, iid, session=work.session, reading=work.policy(Reading))
    return shown_alert(AlertDetail, found, work.settings.base_url)


@action("alerts.change")
def change_alert(work: Work, project: ProjectView, iid: int, change: AlertBody) -> AlertDetail:
    """Change the status or the assignee of an alert.

    Raise InvalidError, ConflictError or NotFoundError.
    """
    assignee, by = _assignee(work, change), work.actor.source.actor
    if change.status is not None:
        wanted = StatusChange(status=change.status, by=by)
        change_status(project.id, iid, wanted, session=work.session, now=work.now)
    if assignee is not None:
        assign(project, iid, assignee, by=by, session=work.session, now=work.now)
    return show_alert(work, project, iid)


@action("alerts.delete")
def delete_alert(work: Work, project: ProjectView, iid: int) -> Alert:
    """Delete an alert with its activity.

    Its deliveries remain in the log until they expire. Raise NotFoundError if there is no such
    alert.
    """
    is_it = (AlertRow.project_id == project.id, AlertRow.iid == iid)
    work.session.execute(select(AlertRow.id).where(*is_it).with_for_update())
    row = work.session.execute(queries.ROWS.where(*is_it)).first()
    if row is None:
        raise NotFoundError(f"Alert {iid} not found in this project.")
    gone = shown_alert(Alert, queries.row_of(row), work.settings.base_url)
    work.session.execute(delete(AlertRow).where(AlertRow.id == gone.id))
    details = {"project": project.path, "iid": iid, "status": gone.status}
    work.record(EventKind.ALERT_DELETED, subject=gone.title, details=details)
    return gone


@question("alert_activity.notes")
def list_alert_notes(
    work: Work, project: ProjectView, iid: int, query: ActivityQuery
) -> Found[AlertNote]:
    """List the notes of users on an alert, newest first."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    page = list_notes(alert_id, query.part, session=work.session)
    return Found.of_page(page, AlertNote.model_validate)


@action("alert_activity.create_note")
def create_note(work: Work, project: ProjectView, iid: int, new: AlertNoteBody) -> AlertNote:
    """Add a note to an alert.

    Raise InvalidError or NotFoundError.
    """
    text = storable(new.body.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        raise InvalidError("Enter a note.", field="body")
    if len(text) > LONGEST_NOTE:
        message = f"A note can have at most {LONGEST_NOTE:,} characters. This has {len(text):,}."
        raise InvalidError(message, field="body")
    alert_id, by = get_alert_id(project.id, iid, session=work.session), work.actor.source.actor
    row = add_entry(alert_id, NoteKind.NOTE, text, by=by, session=work.session, now=work.now)
    work.session.flush()  # Assigns the ID.
    return AlertNote.model_validate(view_of(row))


@question("alert_activity.index")
def list_alert_activity(
    work: Work, project: ProjectView, iid: int, query: ActivityQuery
) -> Found[AlertActivity]:
    """List the activity of an alert, newest first."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    page = list_activity(alert_id, query.part, session=work.session)
    return Found.of_page(page, AlertActivity.model_validate)


@question("alert_activity.occurrences")
def list_alert_occurrences(
    work: Work, project: ProjectView, iid: int, query: ActivityQuery
) -> Found[AlertOccurrence]:
    """List the reports of an alert with their deliveries, newest first."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    position = read_position(query.cursor)
    page = list_occurrences(alert_id, position, size=query.size, session=work.session)
    return Found.of_page(page, lambda occurrence: occurrence)


def _assignee(work: Work, change: AlertBody) -> str | None:
    """Return the user name to assign, NOBODY, or None to keep the assignee."""
    if {"assignee", "assignee_id"} <= change.model_fields_set:
        raise InvalidError("assignee, assignee_id are mutually exclusive", field="assignee")
    if "assignee_id" in change.model_fields_set:
        if not change.assignee_id:
            return NOBODY
        return username_of(change.assignee_id, session=work.session)
    return change.assignee or NOBODY if "assignee" in change.model_fields_set else None
