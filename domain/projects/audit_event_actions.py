"""Actions that read the audit log of the instance, of a group or of a project."""

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.audit import log
from domain.audit.log import EventFilter
from domain.audit.types import AuditEvent, AuditEventQuery, NamespaceAuditEventQuery
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectOrGroup


@read_action("audit_events.index")
def list_events(work: UnitOfWork, query: AuditEventQuery) -> ListPage[AuditEvent]:
    """List the audit events of the instance, newest first."""
    found = log.list_events(query.event_filter, query.requested_range, session=work.session)
    return ListPage.from_page_result(found, AuditEvent.from_view)


@read_action("audit_events.show")
def show_event(work: UnitOfWork, event_id: int) -> AuditEvent:
    """Show an audit event of the instance.

    Raise NotFoundError if there is no such event.
    """
    return AuditEvent.from_view(log.get_event(event_id, session=work.session))


@read_action("namespace_audit_events.index")
def list_namespace_events(
    work: UnitOfWork, holder: ProjectOrGroup, query: NamespaceAuditEventQuery
) -> ListPage[AuditEvent]:
    """List the audit events of a project or group, newest first.

    Callers who are neither owners of the group nor maintainers of the project see only their own
    events.
    """
    sees_all = (holder.role or 0) >= (Role.OWNER if holder.is_group else Role.MAINTAINER)
    wanted = EventFilter(
        project_id=holder.namespace.project_id,
        group_id=holder.namespace.group_id,
        actor_id=None if sees_all else work.actor.id,
        since=query.created_after,
        until=query.created_before,
    )
    found = log.list_events(wanted, query.requested_range, session=work.session)
    return ListPage.from_page_result(found, AuditEvent.from_view)


@read_action("namespace_audit_events.show")
def show_namespace_event(work: UnitOfWork, holder: ProjectOrGroup, event_id: int) -> AuditEvent:
    """Show an audit event of a project or group.

    Raise NotFoundError if the project or group has no such event.
    """
    namespace = holder.namespace
    wanted = EventFilter(project_id=namespace.project_id, group_id=namespace.group_id)
    return AuditEvent.from_view(log.get_event(event_id, wanted, session=work.session))
