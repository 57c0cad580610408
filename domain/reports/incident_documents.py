"""Post-incident documents: filled-in templates that teams edit."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.listing.filters import SEVERITIES
from domain.audit.events import EventKind
from domain.core.clock import date_and_time
from domain.core.database.paging import Slice
from domain.core.errors import ConflictError
from domain.incidents.actions import show_incident
from domain.incidents.listing import get_row, locked_incident
from domain.incidents.timeline import TimelineEntry, list_entries, sentence_of
from domain.incidents.types import EntryKind, Incident, checked_lines
from domain.paging.escalations.steps import TargetKind, target_words
from domain.projects.views import ProjectView
from domain.reports.rows import entries_of
from domain.reports.types import (
    LONGEST_DOCUMENT,
    DocumentQuery,
    IncidentDocument,
    IncidentDocumentChange,
)
from domain.reports.writing import length_words, plain
from models import Alert, Contact, EscalationPage, IncidentAlert, User
from models import IncidentDocument as DocumentRow

#: Maximum number of each of alerts, pages and timeline entries in the template.
_MOST = 200
_Line = tuple[datetime, str]
#: Headings of questions for the team, with placeholders for the answers.
_QUESTIONS = (
    ("What went well", "What helped us to detect and fix the problem?"),
    ("What went wrong", "What delayed us in detecting or fixing the problem?"),
    ("Where we got lucky", "What could have made it worse?"),
)


@question("incident_documents.show")
def show_document(
    work: Work, project: ProjectView, iid: int, query: DocumentQuery
) -> IncidentDocument:
    """Show the post-incident document, or a filled-in template.

    Raise NotFoundError if the incident does not exist.
    """
    row = work.session.get(DocumentRow, get_row(project.id, iid, session=work.session).id)
    text = _template(work, project, iid) if row is None or query.template else row.text
    return _shown(work, project, iid, row, text)


@question("incident_documents.download")
def write_document(work: Work, project: ProjectView, iid: int) -> str:
    """Return the post-incident document as Markdown.

    Raise NotFoundError if the incident does not exist.
    """
    return show_document(work, project, iid, DocumentQuery()).text + "\n"


@action("incident_documents.change")
def change_document(
    work: Work, project: ProjectView, iid: int, change: IncidentDocumentChange
) -> IncidentDocument:
    """Save the post-incident document.

    Raise InvalidError for an invalid text, and NotFoundError if the incident does not exist. Raise
    ConflictError if another user changed it in the meantime.
    """
    text = checked_lines(change.text, "text", LONGEST_DOCUMENT)
    incident = locked_incident(project.id, iid, session=work.session)
    row = work.session.get(DocumentRow, incident.id, populate_existing=True)
    if change.revision is not None and change.revision != (row.revision if row else 0):
        name = row and _changed_by(work, row)
        by = f" by @{name}" if name else ""
        message = (
            f"The document was changed{by} in the meantime. Merge your changes with the current "
            "text."
        )
        raise ConflictError(message, field="text")
    if row is not None and row.text == text:
        return _shown(work, project, iid, row, row.text)
    if row is None:
        row = DocumentRow(incident_id=incident.id, revision=0, created_at=work.now)
        work.session.add(row)
    row.text, row.revision, row.updated_at = text, row.revision + 1, work.now
    row.user_id = work.actor.id
    details = {"project": project.path, "iid": iid, "revision": row.revision}
    work.record(EventKind.INCIDENT_DOCUMENT_CHANGED, subject=incident.title, details=details)
    work.session.flush()
    return _shown(work, project, iid, row, text)


def _shown(
    work: Work, project: ProjectView, iid: int, row: DocumentRow | None, text: str
) -> IncidentDocument:
    return IncidentDocument(
        incident_iid=iid,
        text=text,
        saved=row is not None,
        revision=row.revision if row else 0,
        updated_at=row.updated_at if row else None,
        updated_by=_changed_by(work, row) if row else None,
        web_url=f"{work.settings.base_url}/{project.path}/-/incidents/{iid}/document",
    )


def _changed_by(work: Work, row: DocumentRow) -> str | None:
    return work.session.scalar(select(User.username).where(User.id == row.user_id))


def _template(work: Work, project: ProjectView, iid: int) -> str:
    incident = show_incident(work, project, iid)
    incident_id = get_row(project.id, iid, session=work.session).id
    return "\n".join(_sections(incident, _Told(work, incident_id)))


class _Told:
    """The stored history of an incident as lines of its document."""

    def __init__(self, work: Work, incident_id: int) -> None:
        self._session, self._incident_id = work.session, incident_id
        self.alerts: Sequence[Alert] = work.session.scalars(
            select(Alert)
            .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
            .where(IncidentAlert.incident_id == incident_id)
            .order_by(Alert.started_at, Alert.id)
            .limit(_MOST)
        ).all()
        self._iids = {alert.id: alert.iid for alert in self.alerts}

    def timeline(self) -> list[_Line]:
        """Return the events of the incident in order of time."""
        lines = [*self._entries(), *self._openings(), *self._pages(), *self._answers()]
        return sorted(lines, key=lambda line: line[0])

    def _entries(self) -> Iterator[_Line]:
        # Readers of the document may lack access to internal comments.
        part = Slice(size=_MOST, before=None)
        found = list_entries(
            self._incident_id,
            part,
            shows_internal=False,
            is_oldest_first=True,
            session=self._session,
        )
        for each in found.items:
            yield each.created_at, _entry_words(each)

    def _openings(self) -> Iterator[_Line]:
        for alert in self.alerts:
            severity = SEVERITIES[alert.severity].value
            yield alert.started_at, f"Alert #{alert.iid} {plain(alert.title)} started ({severity})"
            if alert.ended_at is not None:
                yield alert.ended_at, f"Alert #{alert.iid} ended"

    def _pages(self) -> Iterator[_Line]:
        page = EscalationPage
        found = (
            select(page.alert_id, page.paged_at, page.step, User.username, Contact.label)
            .outerjoin(User, User.id == page.user_id)
            .outerjoin(Contact, Contact.id == page.channel_id)
            .where(page.alert_id.in_(self._iids))
            .order_by(page.id)
            .limit(_MOST)
        )
        for row in self._session.execute(found):
            kind = TargetKind.CHANNEL if row.label else TargetKind.USER
            name = plain(target_words(kind, row.label or row.username))
            iid = self._iids[row.alert_id]
            yield row.paged_at, f"Step {row.step} paged {name} for alert #{iid}"

    def _answers(self) -> Iterator[_Line]:
        ids = select(IncidentAlert.alert_id).where(IncidentAlert.incident_id == self._incident_id)
        for alert_id, entries in entries_of(ids, session=self._session).items():
            for each in entries:
                by = f"@{each.by}" if each.by else "The service"
                status = "triggered again" if each.status == "triggered" else each.status
                if iid := self._iids.get(alert_id):
                    yield each.at, f"{by} set alert #{iid} to {status}"


def _entry_words(entry: TimelineEntry) -> str:
    by = f"@{entry.user_name}" if entry.user_name else "The service"
    said = plain(sentence_of(entry))
    if entry.kind is EntryKind.OPENED:
        return f"Incident {said}" + (f", by {by}" if entry.user_name else "")
    return f"{by} wrote: {said}" if entry.is_comment else f"{by} {said}"


def _sections(incident: Incident, told: _Told) -> Iterator[str]:
    timeline = told.timeline()
    yield from (f"# {plain(incident.title)}", "", "## Summary", "")
    yield f"- Incident: [#{incident.iid}]({incident.web_url}), {incident.severity.value}"
    yield f"- Opened: {date_and_time(incident.created_at)}"
    if incident.acknowledged_at is not None:
        after = (incident.acknowledged_at - incident.created_at).total_seconds()
        yield f"- Acknowledged: {date_and_time(incident.acknowledged_at)}, {_after(after)}"
    if incident.resolved_at is not None:
        after = (incident.resolved_at - incident.created_at).total_seconds()
        yield f"- Closed: {date_and_time(incident.resolved_at)}, {_after(after)}"
    people = ", ".join(f"@{each.username}" for each in incident.assignees)
    yield f"- Assignees: {people or 'none'}"
    yield from ("", "What happened? Answer in two sentences.", "", "## Impact", "")
    yield from ("Who was affected, how, and for how long?", "", "Alerts:", "")
    for alert in told.alerts:
        yield f"- #{alert.iid} {plain(alert.title)} ({SEVERITIES[alert.severity].value})"
    if incident.alerts_count > len(told.alerts):
        yield f"- and {incident.alerts_count - len(told.alerts):,} more"
    yield from ("", "## Timeline", "")
    yield from (f"- {date_and_time(at)}: {what}" for at, what in timeline)
    for title, question_ in _QUESTIONS:
        yield from ("", f"## {title}", "", f"- {question_}")
    yield from ("", "## Action items", "", "- [ ] Action, owner, due date")


def _after(seconds: float) -> str:
    return f"after {length_words(seconds)}"
