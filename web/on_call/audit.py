"""Records changes of on-call schedules in the audit log."""

from typing import Any

from domain.audit.events import Event, EventKind
from domain.clock import written
from domain.on_call.overrides import OverrideView
from domain.on_call.people import people
from domain.on_call.plans import RotationPlan
from domain.on_call.rotation_syntax import written_cadence
from domain.on_call.schedules import ScheduleView
from domain.on_call.swaps import SwapView
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.audit_events import record_event


def record_schedule_change(change: str, project: ProjectView, schedule: ScheduleView) -> None:
    """Record that a schedule was created, changed or deleted, with what it is now."""
    details = {
        "change": change,
        "project": project.path,
        "time_zone": schedule.time_zone,
        "rotations": [_rotation(each) for each in schedule.rotations],
    }
    _record(EventKind.ON_CALL_SCHEDULE_CHANGED, schedule, details)


def _rotation(plan: RotationPlan) -> str:
    named = people(plan.user_ids, session=db.session())
    names = ", ".join(named[each].username for each in plan.user_ids)
    return f"{plan.name}: {names}, {written_cadence(plan.cadence)}"


def record_override_change(
    change: str, project: ProjectView, schedule: ScheduleView, override: OverrideView
) -> None:
    """Record that somebody was put on call for a time, or that this ended."""
    details = {
        "change": change,
        "project": project.path,
        "user": override.person.username,
        "starts_at": written(override.starts_at),
        "ends_at": written(override.ends_at),
    }
    _record(EventKind.ON_CALL_OVERRIDE_CHANGED, schedule, details)


def record_swap_change(
    change: str, project: ProjectView, schedule: ScheduleView, swap: SwapView
) -> None:
    """Record that two users exchanged shifts, or that this was undone."""
    details = {
        "change": change,
        "project": project.path,
        "user": swap.person.username,
        "starts_at": written(swap.starts_at),
        "ends_at": written(swap.ends_at),
        "other_user": swap.other_person.username,
        "other_starts_at": written(swap.other_starts_at),
        "other_ends_at": written(swap.other_ends_at),
    }
    _record(EventKind.ON_CALL_SWAP_CHANGED, schedule, details)


def record_calendar_change(change: str, project: ProjectView, schedule: ScheduleView) -> None:
    """Record that the secret address of a calendar was made, or ended."""
    details = {"change": change, "project": project.path}
    _record(EventKind.ON_CALL_CALENDAR_CHANGED, schedule, details)


def _record(kind: EventKind, schedule: ScheduleView, details: dict[str, Any]) -> None:
    record_event(Event(kind=kind, subject=schedule.name, details=details))
