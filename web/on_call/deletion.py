"""Deletes schedules that no escalation policy pages, for pages, the API and commands."""

from domain.escalations.steps import Target, TargetKind
from domain.escalations.usage import check_unused
from domain.on_call import schedules as domain
from domain.on_call.schedules import ScheduleView
from domain.projects.views import ProjectView
from web.extensions import db
from web.on_call.audit import record_schedule_change


def delete_schedule(project: ProjectView, schedule_id: int) -> ScheduleView:
    """Delete a schedule with all that belongs to it, and return it.

    Raise NotFoundError, or ConflictError that names the escalation policy that pages it.
    """
    check_unused(Target(TargetKind.SCHEDULE, schedule_id), project.id, session=db.session())
    deleted = domain.delete_schedule(project.id, schedule_id, session=db.session())
    record_schedule_change("deleted", project, deleted)
    return deleted
