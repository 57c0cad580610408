"""Records in the audit log that an alert was deleted."""

from domain.alerts.handling.removal import DeletedAlert
from domain.audit.events import Event, EventKind
from domain.projects.views import ProjectView
from web.http.audit_events import record_event


def record_deletion(project: ProjectView, alert: DeletedAlert) -> None:
    """Record an audit event with what is left of the alert."""
    details = {"project": project.path, "iid": alert.iid, "status": alert.status}
    record_event(Event(kind=EventKind.ALERT_DELETED, subject=alert.title, details=details))
