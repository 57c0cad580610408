"""What follows from a change of an on-call schedule, for pages, the API and commands."""

from domain.on_call.notices import tell_of_removal
from domain.on_call.schedules import ScheduleView
from domain.projects.views import ProjectView
from web.on_call.audit import record_schedule_change
from web.on_call.notices import tell_users


def follow_change(
    project: ProjectView, before: ScheduleView, after: ScheduleView, *, by_id: int | None
) -> None:
    """Record a change, and tell whom it took out of a rotation; do nothing if there is none."""
    if after == before:
        return
    record_schedule_change("changed", project, after)
    tell_users(tell_of_removal, before, project, after, by_id=by_id)
