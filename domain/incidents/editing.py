"""Changes of an incident's words, severity and assignees, and its deletion."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.orm import Session

from domain.alerts.reading.incoming import Severity
from domain.audit.events import Actor
from domain.incidents.assignees import set_assignees
from domain.incidents.fields import checked_description, checked_title
from domain.incidents.links import stop_following
from domain.incidents.rows import locked_incident, views_of
from domain.incidents.timeline import EntryKind, NewEntry, add_entries
from domain.incidents.views import IncidentView, severity_of, urgency_of
from domain.projects.views import ProjectView
from models import Incident


@dataclass(frozen=True, kw_only=True)
class IncidentEdit:
    """What is to be changed; what is None stays."""

    title: str | None = None
    description: str | None = None
    severity: Severity | None = None
    closes_when_resolved: bool | None = None
    #: User names; others are not assigned any more.
    assignees: Sequence[str] | None = None


def edit_incident(
    project: ProjectView,
    iid: int,
    edit: IncidentEdit,
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
) -> IncidentView:
    """Change an incident, and write in its timeline what changed."""
    incident = locked_incident(project.id, iid, session=session)
    entries = list(_changes(incident, edit))
    add_entries(entries, by=by, session=session, now=now)
    if entries:
        incident.updated_at = now
    if edit.assignees is not None:
        set_assignees(project, incident, edit.assignees, by=by, session=session, now=now)
    (view,) = views_of([incident], session=session)
    return view


def _changes(incident: Incident, edit: IncidentEdit) -> Iterator[NewEntry]:
    title = incident.title if edit.title is None else checked_title(edit.title)
    if title != incident.title:
        details = {"old": incident.title, "new": title}
        incident.title = title
        yield NewEntry(incident_id=incident.id, kind=EntryKind.TITLE, details=details)
    description = (
        incident.description if edit.description is None else checked_description(edit.description)
    )
    if description != incident.description:
        incident.description = description
        yield NewEntry(incident_id=incident.id, kind=EntryKind.DESCRIPTION)
    if edit.severity is not None and urgency_of(edit.severity) != incident.urgency:
        yield severity_entry(incident, urgency_of(edit.severity))
    closes = edit.closes_when_resolved
    if closes is not None and closes != incident.closes_when_resolved:
        incident.closes_when_resolved = closes
        yield NewEntry(incident_id=incident.id, kind=EntryKind.CLOSING, details={"new": closes})


def severity_entry(incident: Incident, urgency: int) -> NewEntry:
    """Change the severity, and return the entry that says so."""
    old, incident.urgency = incident.urgency, urgency
    details = {"old": severity_of(old).value, "new": severity_of(urgency).value}
    return NewEntry(incident_id=incident.id, kind=EntryKind.SEVERITY, details=details)


def delete_incident(project_id: int, iid: int, *, session: Session) -> IncidentView:
    """Delete an incident with its timeline; its alerts stay. Return it as it was."""
    incident = locked_incident(project_id, iid, session=session)
    (view,) = views_of([incident], session=session)
    session.execute(delete(Incident).where(Incident.id == incident.id))
    stop_following(project_id, session=session)
    return view
