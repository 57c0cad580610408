"""Records changes of integrations in the audit log."""

from domain.alerts.integrations.integrations import IntegrationView
from domain.audit.events import Event, EventKind
from domain.projects.views import ProjectView
from web.http.audit_events import record_event


def record_change(change: str, project: ProjectView, integration: IntegrationView) -> None:
    """Record an audit event; `change` describes it in a few words."""
    details = {
        "change": change,
        "project": project.path,
        "type": integration.type.name,
        "active": integration.active,
    }
    record_event(
        Event(kind=EventKind.INTEGRATION_CHANGED, subject=integration.name, details=details)
    )
