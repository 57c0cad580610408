"""Acknowledges the incidents and alerts in a message through the link in the message."""

from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.incidents.changes import change_incident_status
from domain.incidents.listing import lock_incidents
from domain.incidents.types import IncidentStatus
from domain.paging.notifications.acknowledging import (
    VIA_MESSAGE_LINK,
    AcknowledgementLink,
    LinkSelection,
    acknowledge_alerts,
    find_selected_subjects,
)
from domain.paging.notifications.page_targets import SubjectKind
from models import Incident


def acknowledge_by_link(
    work: UnitOfWork, link: AcknowledgementLink, selection: LinkSelection
) -> int:
    """Acknowledge the selected items of a link that are still triggered, and return their number.

    Raise ForbiddenError or InvalidError like `find_selected_subjects`.
    """
    found = find_selected_subjects(work, link, selection)
    by_project = found.get_ids_of_kind(SubjectKind.INCIDENT)
    for project_id in by_project:
        lock_incidents(project_id, session=work.session)
    own = work.with_actor(found.user.id or 0, found.user.name)
    status, done = IncidentStatus.ACKNOWLEDGED.value, 0
    for project_id, ids in by_project.items():
        waiting = select(Incident).where(
            Incident.id.in_(ids), Incident.status == IncidentStatus.TRIGGERED.value
        )
        again = waiting.order_by(Incident.id).execution_options(populate_existing=True)
        for row in work.session.scalars(again).all():
            change_incident_status(work, row, status, actor=found.user, via=VIA_MESSAGE_LINK)
            about = {"project": found.projects[project_id].path, "iid": row.iid, "status": status}
            own.record_audit_event(EventKind.INCIDENT_CHANGED, subject=row.title, details=about)
            done += 1
    work.session.flush()
    return done + acknowledge_alerts(work, found)
