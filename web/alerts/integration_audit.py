"""Writes down who changed an integration."""

from domain.alerts.integrations.integrations import IntegrationRow
from domain.audit.events import Event, EventKind
from domain.projects.views import ProjectView
from web.http.audit import note


def note_change(change: str, project: ProjectView, row: IntegrationRow) -> None:
    """Keep an audit event; `change` says in a few words what was done."""
    details = {"change": change, "project": project.path, "type": row.type, "active": row.active}
    note(Event(kind=EventKind.INTEGRATION_CHANGED, subject=row.name, details=details))
