"""/api/v4/{projects,groups}/:id/audit_events: the audit log of one project or group."""

from flask import Blueprint

from domain.access.roles import Role
from domain.audit import log
from domain.audit.log import EventFilter
from domain.projects.views import Holder, Viewer
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.instance.audit_events import AuditEvent, PlaceAuditEventQuery
from web.extensions import db

place_audit_events = Blueprint(
    "place_audit_events",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/audit_events",
)


@place_audit_events.get("")
@operation("place_audit_events.index", query=PlaceAuditEventQuery, returns=AuditEvent)
def index(holder: Holder, viewer: Viewer, query: PlaceAuditEventQuery) -> Found[AuditEvent]:
    """List the events of a project or group, newest first; without a higher role, one's own."""
    sees_all = (holder.role or 0) >= (Role.OWNER if holder.is_group else Role.MAINTAINER)
    wanted = EventFilter(
        project_id=holder.namespace.project_id,
        group_id=holder.namespace.group_id,
        actor_id=None if sees_all else viewer.user_id,
        since=query.created_after,
        until=query.created_before,
    )
    found = log.list_events(wanted, query.part, session=db.session())
    return Found.of(found, AuditEvent.of)


@place_audit_events.get("/<int:event_id>")
@operation("place_audit_events.show", returns=AuditEvent)
def show(holder: Holder, event_id: int) -> AuditEvent:
    """Show an event of a project or group."""
    namespace = holder.namespace
    wanted = EventFilter(project_id=namespace.project_id, group_id=namespace.group_id)
    return AuditEvent.of(log.get_event(event_id, wanted, session=db.session()))
