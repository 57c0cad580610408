"""Post-incident documents: filled-in templates that teams edit."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import itemgetter

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.listing.filters import SEVERITIES
from domain.audit.events import EventKind
from domain.core.clock import format_message_time
from domain.core.database.pagination import KeysetRange
from domain.core.errors import ConflictError
from domain.incidents.actions import show_incident
from domain.incidents.listing import get_incident_row, lock_incident
from domain.incidents.timeline import TimelineEntry, format_timeline_entry, list_timeline_entries
from domain.incidents.types import EntryKind, Incident, validate_multiline_text
from domain.paging.escalations.policy_steps import TargetKind, format_target
from domain.projects.views import ProjectView
from domain.reports.report_formats import format_duration_cell, format_plain_line
from domain.reports.report_queries import find_status_entries
from domain.reports.types import (
    MAX_DOCUMENT_LENGTH,
    DocumentQuery,
    IncidentDocument,
    IncidentDocumentChange,
)
from models import Alert, Contact, EscalationPage, IncidentAlert, User
from models import IncidentDocument as DocumentRow

#: Maximum number of each kind of item in the template: alerts, pages and timeline entries.
_MAX_ITEMS = 200


@read_action("incident_documents.show")
def show_document(
    work: UnitOfWork, project: ProjectView, iid: int, query: DocumentQuery
) -> IncidentDocument:
    """Show the post-incident document of an incident, or a filled-in template.

    Raise NotFoundError if the incident does not exist.
    """
    incident_id = get_incident_row(project.id, iid, session=work.session).id
    row = work.session.get(DocumentRow, incident_id)
    if row is None or query.template:
        incident = show_incident(work, project, iid)
        text = "\n".join(_format_sections(incident, incident_id, session=work.session))
    else:
        text = row.text
    return _build_document(work, project, iid, row, text)


@read_action("incident_documents.download")
def export_document(work: UnitOfWork, project: ProjectView, iid: int) -> str:
    """Return the post-incident document as Markdown.

    Raise NotFoundError if the incident does not exist.
    """
    return show_document(work, project, iid, DocumentQuery()).text + "\n"


@action("incident_documents.change")
def change_document(
    work: UnitOfWork, project: ProjectView, iid: int, change: IncidentDocumentChange
) -> IncidentDocument:
    """Save the post-incident document of an incident.

    Raise InvalidError for invalid text, and NotFoundError if the incident does not exist. Raise
    ConflictError if the document has changed since the given revision.
    """
    text = validate_multiline_text(change.text, "text", MAX_DOCUMENT_LENGTH)
    incident = lock_incident(project.id, iid, session=work.session)
    row = work.session.get(DocumentRow, incident.id, populate_existing=True)
    if change.revision is not None and change.revision != (row.revision if row else 0):
        name = row and _find_author(work, row)
        by = f" by @{name}" if name else ""
        message = (
            f"The document was changed{by} in the meantime. Merge your changes with the current "
            "text."
        )
        raise ConflictError(message, field="text")
    if row is not None and row.text == text:
        return _build_document(work, project, iid, row, row.text)
    if row is None:
        row = DocumentRow(incident_id=incident.id, revision=0, created_at=work.now)
        work.session.add(row)
    row.text, row.revision, row.updated_at = text, row.revision + 1, work.now
    row.user_id = work.actor.id
    details = {"project": project.path, "iid": iid, "revision": row.revision}
    work.record_audit_event(
        EventKind.INCIDENT_DOCUMENT_CHANGED, subject=incident.title, details=details
    )
    work.session.flush()
    return _build_document(work, project, iid, row, text)


def _build_document(
    work: UnitOfWork, project: ProjectView, iid: int, row: DocumentRow | None, text: str
) -> IncidentDocument:
    return IncidentDocument(
        incident_iid=iid,
        text=text,
        saved=row is not None,
        revision=row.revision if row else 0,
        updated_at=row.updated_at if row else None,
        updated_by=_find_author(work, row) if row else None,
        web_url=f"{work.settings.base_url}/{project.path}/-/incidents/{iid}/document",
    )


def _find_author(work: UnitOfWork, row: DocumentRow) -> str | None:
    return work.session.scalar(select(User.username).where(User.id == row.user_id))


def _list_events(
    incident_id: int, alerts: Sequence[Alert], *, session: Session
) -> Iterator[tuple[datetime, str]]:
    """Yield the events of an incident and its alerts, in no particular order."""
    # Readers of the document might not have access to internal comments.
    found = list_timeline_entries(
        incident_id,
        KeysetRange(size=_MAX_ITEMS, before=None),
        shows_internal=False,
        is_oldest_first=True,
        session=session,
    )
    for entry in found.items:
        yield entry.created_at, _format_entry(entry)
    for alert in alerts:
        title, severity = format_plain_line(alert.title), SEVERITIES[alert.severity].value
        yield alert.started_at, f"Alert #{alert.iid} {title} started ({severity})"
        if alert.ended_at is not None:
            yield alert.ended_at, f"Alert #{alert.iid} ended"
    yield from _list_pages_and_answers(incident_id, alerts, session=session)


def _list_pages_and_answers(
    incident_id: int, alerts: Sequence[Alert], *, session: Session
) -> Iterator[tuple[datetime, str]]:
    page, iids = EscalationPage, {alert.id: alert.iid for alert in alerts}
    pages = (
        select(page.alert_id, page.paged_at, page.step, User.username, Contact.label)
        .outerjoin(User, User.id == page.user_id)
        .outerjoin(Contact, Contact.id == page.channel_id)
        .where(page.alert_id.in_(iids))
        .order_by(page.id)
        .limit(_MAX_ITEMS)
    )
    for row in session.execute(pages):
        kind = TargetKind.CHANNEL if row.label else TargetKind.USER
        name = format_plain_line(format_target(kind, row.label or row.username))
        yield row.paged_at, f"Step {row.step} paged {name} for alert #{iids[row.alert_id]}"
    ids = select(IncidentAlert.alert_id).where(IncidentAlert.incident_id == incident_id)
    for alert_id, entries in find_status_entries(ids, session=session).items():
        for each in entries:
            by = f"@{each.by}" if each.by else "The service"
            status = "triggered again" if each.status == "triggered" else each.status
            if iid := iids.get(alert_id):
                yield each.at, f"{by} set alert #{iid} to {status}"


def _format_entry(entry: TimelineEntry) -> str:
    by = f"@{entry.user_name}" if entry.user_name else "The service"
    said = format_plain_line(format_timeline_entry(entry))
    if entry.kind is EntryKind.OPENED:
        return f"Incident {said}" + (f", by {by}" if entry.user_name else "")
    return f"{by} wrote: {said}" if entry.is_comment else f"{by} {said}"


def _format_sections(incident: Incident, incident_id: int, *, session: Session) -> Iterator[str]:
    alerts = session.scalars(
        select(Alert)
        .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
        .where(IncidentAlert.incident_id == incident_id)
        .order_by(Alert.started_at, Alert.id)
        .limit(_MAX_ITEMS)
    ).all()
    yield from (f"# {format_plain_line(incident.title)}", "", "## Summary", "")
    yield f"- Incident: [#{incident.iid}]({incident.web_url}), {incident.severity.value}"
    yield f"- Opened: {format_message_time(incident.created_at)}"
    for state, at in (("Acknowledged", incident.acknowledged_at), ("Closed", incident.resolved_at)):
        if at is not None:
            after = format_duration_cell((at - incident.created_at).total_seconds())
            yield f"- {state}: {format_message_time(at)}, after {after}"
    people = ", ".join(f"@{each.username}" for each in incident.assignees)
    yield f"- Assignees: {people or 'none'}"
    yield from ("", "What happened? Answer in two sentences.", "", "## Impact", "")
    yield from ("Who was affected, how, and for how long?", "", "Alerts:", "")
    for alert in alerts:
        severity = SEVERITIES[alert.severity].value
        yield f"- #{alert.iid} {format_plain_line(alert.title)} ({severity})"
    if incident.alerts_count > len(alerts):
        yield f"- and {incident.alerts_count - len(alerts):,} more"
    yield from ("", "## Timeline", "")
    events = sorted(_list_events(incident_id, alerts, session=session), key=itemgetter(0))
    yield from (f"- {format_message_time(at)}: {what}" for at, what in events)
    yield from ("", "## What went well", "", "- What helped us to detect and fix the problem?")
    yield from ("", "## What went wrong", "")
    yield "- What delayed us in detecting or fixing the problem?"
    yield from ("", "## Where we got lucky", "", "- What could have made it worse?")
    yield from ("", "## Action items", "", "- [ ] Action, owner, due date")
