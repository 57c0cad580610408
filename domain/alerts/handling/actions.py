"""Actions on alerts and their notes."""

from sqlalchemy import delete, select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.activity import (
    ActivityEntryKind,
    add_activity_entry,
    build_activity_view,
    list_activity,
    list_notes,
)
from domain.alerts.handling.alert_detail import get_alert_detail, get_alert_id
from domain.alerts.handling.assignments import get_assignee_username, set_assignee
from domain.alerts.handling.occurrences import list_occurrences, parse_occurrence_position
from domain.alerts.handling.status import StatusChange, change_alert_status
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
from domain.alerts.listing.filters import NO_ASSIGNEE
from domain.alerts.listing.types import Alert, AlertQuery, build_alert_resource, parse_alert_slice
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import Alert as AlertRow

MAX_NOTE_LENGTH = 10_000


@read_action("alerts.index")
def list_alerts(work: UnitOfWork, project: ProjectView, query: AlertQuery) -> ListPage[Alert]:
    """List the alerts of a project, optionally filtered and sorted."""
    wanted, part = query.build_filter(project.id), parse_alert_slice(query)
    page = queries.list_alerts(wanted, part, session=work.session)
    return ListPage.from_keyset_page(
        page, lambda row: build_alert_resource(Alert, row, work.settings.base_url)
    )


@read_action("alerts.show")
def show_alert(work: UnitOfWork, project: ProjectView, iid: int) -> AlertDetail:
    """Show an alert with all its fields."""
    found = get_alert_detail(
        project.id, iid, session=work.session, reading=work.policy(ParserSettings)
    )
    return build_alert_resource(AlertDetail, found, work.settings.base_url)


@action("alerts.change")
def change_alert(
    work: UnitOfWork, project: ProjectView, iid: int, change: AlertBody
) -> AlertDetail:
    """Change the status or the assignee of an alert.

    Raise InvalidError if a value is not valid, ConflictError if another unresolved alert has the
    same fingerprint, and NotFoundError if there is no such alert.
    """
    assignee, by = _resolve_assignee(work, change), work.actor.source.actor
    if change.status is not None:
        wanted = StatusChange(status=change.status, by=by)
        change_alert_status(project.id, iid, wanted, session=work.session, now=work.now)
    if assignee is not None:
        set_assignee(work, project, iid, assignee, by=by)
    return show_alert(work, project, iid)


@action("alerts.delete")
def delete_alert(work: UnitOfWork, project: ProjectView, iid: int) -> Alert:
    """Delete an alert and its activity.

    Its deliveries remain in the log until they expire. Raise NotFoundError if there is no such
    alert.
    """
    is_it = (AlertRow.project_id == project.id, AlertRow.iid == iid)
    work.session.execute(select(AlertRow.id).where(*is_it).with_for_update())
    row = work.session.execute(queries.ALERT_LIST_QUERY.where(*is_it)).first()
    if row is None:
        raise NotFoundError(f"Alert {iid} not found in this project.")
    gone = build_alert_resource(Alert, queries.build_alert_list_row(row), work.settings.base_url)
    work.session.execute(delete(AlertRow).where(AlertRow.id == gone.id))
    details = {"project": project.path, "iid": iid, "status": gone.status}
    work.record_audit_event(EventKind.ALERT_DELETED, subject=gone.title, details=details)
    return gone


@read_action("alert_activity.notes")
def list_alert_notes(
    work: UnitOfWork, project: ProjectView, iid: int, query: ActivityQuery
) -> ListPage[AlertNote]:
    """List the notes that users added to an alert, newest first."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    page = list_notes(alert_id, query.requested_range, session=work.session)
    return ListPage.from_keyset_page(page, AlertNote.model_validate)


@action("alert_activity.create_note")
def create_note(work: UnitOfWork, project: ProjectView, iid: int, new: AlertNoteBody) -> AlertNote:
    """Add a note to an alert.

    Raise InvalidError if the note is empty or too long, and NotFoundError if there is no such
    alert.
    """
    text = replace_unstorable_characters(new.body.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        raise InvalidError("Enter a note.", field="body")
    if len(text) > MAX_NOTE_LENGTH:
        message = (
            f"A note can have at most {MAX_NOTE_LENGTH:,} characters. This note has {len(text):,}."
        )
        raise InvalidError(message, field="body")
    alert_id, by = get_alert_id(project.id, iid, session=work.session), work.actor.source.actor
    row = add_activity_entry(
        alert_id, ActivityEntryKind.NOTE, text, by=by, session=work.session, now=work.now
    )
    work.session.flush()  # The flush assigns the ID.
    return AlertNote.model_validate(build_activity_view(row))


@read_action("alert_activity.index")
def list_alert_activity(
    work: UnitOfWork, project: ProjectView, iid: int, query: ActivityQuery
) -> ListPage[AlertActivity]:
    """List the activity of an alert, newest first."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    page = list_activity(alert_id, query.requested_range, session=work.session)
    return ListPage.from_keyset_page(page, AlertActivity.model_validate)


@read_action("alert_activity.occurrences")
def list_alert_occurrences(
    work: UnitOfWork, project: ProjectView, iid: int, query: ActivityQuery
) -> ListPage[AlertOccurrence]:
    """List the reports about an alert with their deliveries, newest first."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    position = parse_occurrence_position(query.cursor)
    page = list_occurrences(alert_id, position, size=query.page_size, session=work.session)
    return ListPage.from_keyset_page(page, lambda occurrence: occurrence)


def _resolve_assignee(work: UnitOfWork, change: AlertBody) -> str | None:
    """Return the new assignee's username, NO_ASSIGNEE to unassign, or None to make no change."""
    if {"assignee", "assignee_id"} <= change.model_fields_set:
        raise InvalidError("`assignee` and `assignee_id` are mutually exclusive.", field="assignee")
    if "assignee_id" in change.model_fields_set:
        if not change.assignee_id:
            return NO_ASSIGNEE
        return get_assignee_username(change.assignee_id, session=work.session)
    return change.assignee or NO_ASSIGNEE if "assignee" in change.model_fields_set else None
