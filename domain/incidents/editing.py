"""Changes of an incident's words and severity."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy.orm import Session

from domain.audit.events import Actor
from domain.incidents.fields import checked_description, checked_title, severity_of, urgency_of
from domain.incidents.timeline import EntryKind, NewEntry, add_entries
from domain.incidents.types import IncidentChange
from models import Incident


def edit_incident(
    incident: Incident,
    change: IncidentChange,
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
) -> None:
    """Change the words and the severity of a locked incident, and write that in its timeline."""
    entries = list(_changes(incident, change))
    add_entries(entries, by=by, session=session, now=now)
    if entries:
        incident.updated_at = now


def _changes(incident: Incident, change: IncidentChange) -> Iterator[NewEntry]:
    title = incident.title if change.title is None else checked_title(change.title)
    if title != incident.title:
        details = {"old": incident.title, "new": title}
        incident.title = title
        yield NewEntry(incident_id=incident.id, kind=EntryKind.TITLE, details=details)
    description = (
        incident.description
        if change.description is None
        else checked_description(change.description)
    )
    if description != incident.description:
        incident.description = description
        yield NewEntry(incident_id=incident.id, kind=EntryKind.DESCRIPTION)
    if change.severity is not None and urgency_of(change.severity) != incident.urgency:
        yield severity_entry(incident, urgency_of(change.severity))
    closes = change.close_when_resolved
    if closes is not None and closes != incident.closes_when_resolved:
        incident.closes_when_resolved = closes
        yield NewEntry(incident_id=incident.id, kind=EntryKind.CLOSING, details={"new": closes})


def severity_entry(incident: Incident, urgency: int) -> NewEntry:
    """Change the severity, and return the entry that says so."""
    old, incident.urgency = incident.urgency, urgency
    details = {"old": severity_of(old).value, "new": severity_of(urgency).value}
    return NewEntry(incident_id=incident.id, kind=EntryKind.SEVERITY, details=details)
