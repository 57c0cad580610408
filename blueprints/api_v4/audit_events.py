"""/api/v4/audit_events and /api/v4/{projects,groups}/:id/audit_events: the audit log."""

from flask import Response

from blueprints.admin.audit_export import build_audit_export
from domain.audit.types import AuditEventFilters
from domain.projects import audit_event_actions as actions
from web.api.openapi.view_descriptions import declare_media_types
from web.api.operations import ResourceBlueprint, declare_operation

audit_events = ResourceBlueprint("audit_events", __name__, url_prefix="/audit_events")
audit_events.bind_crud_actions(actions, "/<int:event_id>")

namespace_audit_events = ResourceBlueprint(
    "namespace_audit_events",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/audit_events",
)
namespace_audit_events.bind_crud_actions(actions, "/<int:event_id>")


@audit_events.get("/export.<any(csv, jsonl):extension>")
@declare_media_types(csv="text/csv", jsonl="application/jsonl")
@declare_operation("audit_events.download", query=AuditEventFilters).with_changes(is_heavy=True)
def download(query: AuditEventFilters, extension: str) -> Response:
    """Export the matching audit events as CSV or JSON Lines."""
    return build_audit_export(query.event_filter, kind=extension)
