"""/api/v4/projects/:id/on_call/schedules: schedules with rotations, and who is on call."""

from collections.abc import Sequence

from flask import Blueprint

from domain.database.paging import LARGEST_ID
from domain.oauth.presented_tokens.bearer import Bearer
from domain.on_call import schedules as domain
from domain.on_call.people import people
from domain.on_call.schedules import ScheduleView
from domain.on_call.shifts import on_call_in_project, schedules_now, shifts_of
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.on_call.on_call_schedules import (
    OnCallNowQuery,
    OnCallSchedule,
    OnCallScheduleBody,
    OnCallScheduleChangeBody,
    OnCallScheduleQuery,
    OnCallShift,
    ScheduleOnCall,
    ShiftQuery,
    ShiftWindow,
)
from web.extensions import db
from web.on_call.audit import record_schedule_change
from web.on_call.deletion import delete_schedule
from web.on_call.schedule_changes import follow_change
from web.services import now

AT = "/projects/<path:reference>/on_call/schedules"
#: The converter refuses numbers that databases reject.
ONE = f"/<int(max={LARGEST_ID}):schedule_id>"

on_call_schedules = Blueprint("on_call_schedules", __name__, url_prefix=AT)


@on_call_schedules.get("")
@operation("on_call_schedules.index", query=OnCallScheduleQuery, returns=OnCallSchedule)
def index(project: ProjectView, query: OnCallScheduleQuery) -> Found[OnCallSchedule]:
    """List the on-call schedules of a project."""
    found = domain.list_schedules(project.id, query.part, session=db.session())
    return Found(
        items=_presented(project, found.items), total=found.total, next_cursor=found.next_cursor
    )


@on_call_schedules.get("/current")
@operation("on_call_schedules.current", query=OnCallNowQuery, returns=ScheduleOnCall)
def current(project: ProjectView, query: OnCallNowQuery) -> Found[ScheduleOnCall]:
    """Show who is on call now and next, in every schedule by name."""
    found = on_call_in_project(project.id, session=db.session(), now=now())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=list(map(ScheduleOnCall.of, shown)), total=len(found))


@on_call_schedules.post("")
@operation("on_call_schedules.create", body=OnCallScheduleBody, returns=OnCallSchedule, status=201)
def create(project: ProjectView, body: OnCallScheduleBody) -> OnCallSchedule:
    """Create an on-call schedule."""
    created = domain.create_schedule(
        project.namespace, body.schedule, session=db.session(), now=now()
    )
    record_schedule_change("created", project, created)
    return _one(project, created)


@on_call_schedules.get(ONE)
@operation("on_call_schedules.show", returns=OnCallSchedule)
def show(project: ProjectView, schedule_id: int) -> OnCallSchedule:
    """Show an on-call schedule."""
    return _one(project, domain.get_schedule(project.id, schedule_id, session=db.session()))


@on_call_schedules.put(ONE)
@operation("on_call_schedules.change", body=OnCallScheduleChangeBody, returns=OnCallSchedule)
def change(
    project: ProjectView, schedule_id: int, body: OnCallScheduleChangeBody, bearer: Bearer
) -> OnCallSchedule:
    """Change an on-call schedule from now on; past shifts stay as they were."""
    before = domain.get_schedule(project.id, schedule_id, session=db.session())
    after = domain.change_schedule(
        project.namespace, schedule_id, body.edit, session=db.session(), now=now()
    )
    follow_change(project, before, after, by_id=bearer.user_id)
    return _one(project, after)


@on_call_schedules.delete(ONE)
@operation("on_call_schedules.delete")
def delete(project: ProjectView, schedule_id: int) -> None:
    """Delete an on-call schedule with its rotations, overrides and swaps."""
    delete_schedule(project, schedule_id)


@on_call_schedules.get(f"{ONE}/current")
@operation("on_call_schedules.current_of_one", returns=ScheduleOnCall)
def current_of_one(project: ProjectView, schedule_id: int) -> ScheduleOnCall:
    """Show who is on call in a schedule now, and who is next."""
    schedule = domain.get_schedule(project.id, schedule_id, session=db.session())
    (found,) = schedules_now([schedule], session=db.session(), now=now())
    return ScheduleOnCall.of(found)


@on_call_schedules.get(f"{ONE}/shifts")
@operation("on_call_schedules.shifts", query=ShiftQuery, returns=OnCallShift)
def shifts(project: ProjectView, schedule_id: int, query: ShiftWindow) -> Found[OnCallShift]:
    """List who is on call from one time to another, gaps included, with overrides and swaps."""
    schedule = domain.get_schedule(project.id, schedule_id, session=db.session())
    moment = now()
    found = shifts_of(schedule.id, query.period(moment), session=db.session(), now=moment)
    shown = found[query.offset : query.offset + query.size]
    return Found(items=list(map(OnCallShift.of, shown)), total=len(found))


def _one(project: ProjectView, schedule: ScheduleView) -> OnCallSchedule:
    return _presented(project, [schedule])[0]


def _presented(project: ProjectView, schedules: Sequence[ScheduleView]) -> list[OnCallSchedule]:
    ids = (each for view in schedules for plan in view.rotations for each in plan.user_ids)
    named = people(ids, session=db.session())
    return [OnCallSchedule.of(each, project_path=project.path, named=named) for each in schedules]
