"""Actions that read the audit log of the instance, of a group or of a project."""

from domain.access.actions import question
from domain.access.actor import Work
from domain.access.roles import Role
from domain.audit import log
from domain.audit.log import EventFilter
from domain.audit.types import AuditEvent, AuditEventQuery, NamespaceAuditEventQuery
from domain.core.types.base import Found
from domain.projects.views import Holder


@question("audit_events.index")
def list_events(work: Work, query: AuditEventQuery) -> Found[AuditEvent]:
    """List the audit events of the instance, newest first."""
    found = log.list_events(query.wanted, query.part, session=work.session)
    return Found.of(found, AuditEvent.of)


@question("audit_events.show")
def show_event(work: Work, event_id: int) -> AuditEvent:
    """Show an audit event."""
    return AuditEvent.of(log.get_event(event_id, session=work.session))


@question("namespace_audit_events.index")
def list_namespace_events(
    work: Work, holder: Holder, query: NamespaceAuditEventQuery
) -> Found[AuditEvent]:
    """List the audit events of a project or group, newest first.

    Callers without the Owner role in the group, or the Maintainer role in the project, only see
    their own events.
    """
    sees_all = (holder.role or 0) >= (Role.OWNER if holder.is_group else Role.MAINTAINER)
    wanted = EventFilter(
        project_id=holder.namespace.project_id,
        group_id=holder.namespace.group_id,
        actor_id=None if sees_all else work.actor.id,
        since=query.created_after,
        until=query.created_before,
    )
    found = log.list_events(wanted, query.part, session=work.session)
    return Found.of(found, AuditEvent.of)


@question("namespace_audit_events.show")
def show_namespace_event(work: Work, holder: Holder, event_id: int) -> AuditEvent:
    """Show an audit event of a project or group."""
    namespace = holder.namespace
    wanted = EventFilter(project_id=namespace.project_id, group_id=namespace.group_id)
    return AuditEvent.of(log.get_event(event_id, wanted, session=work.session))
