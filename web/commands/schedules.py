"""Commands about on-call schedules."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.clock import written
from domain.database.paging import parse_id
from domain.errors import NotFoundError
from domain.on_call.people import people
from domain.on_call.rotation_syntax import parse_rotation, written_cadence, written_restriction
from domain.on_call.schedules import (
    NewSchedule,
    ScheduleEdit,
    ScheduleView,
    all_schedules,
    change_schedule,
    create_schedule,
    find_schedule,
    get_schedule,
)
from domain.on_call.shifts import Shift, schedules_now
from domain.projects.access import follow_to_project
from domain.projects.views import ProjectView, Viewer
from web.commands.transaction import one_transaction
from web.extensions import db
from web.on_call.audit import record_schedule_change
from web.on_call.deletion import delete_schedule
from web.on_call.schedule_changes import follow_change
from web.services import now

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)

schedules = AppGroup("schedules", help="On-call schedules of projects.")


@schedules.command("create")
@click.argument("project")
@click.option("--name", required=True, help="Name of the schedule, such as Primary.")
@click.option("--time-zone", required=True, help="Time zone, such as Europe/Berlin.")
@click.option("--description", default="", help="What the schedule is for.")
@click.option(
    "--rotation",
    "rotations",
    multiple=True,
    help="A rotation such as “weekly alice,bob mon 09:00”, “daily alice,bob 09:00” or "
    "“every 12h alice,bob 08:00”. It can be followed by “from 2026-11-30”, “layer 2” and "
    "“only mon-fri 09:00-17:00”. Can be repeated: each one is a layer above those before it.",
)
@one_transaction
def create_schedule_command(
    *, project: str, name: str, time_zone: str, description: str, rotations: tuple[str, ...]
) -> dict[str, Any]:
    """Create an on-call schedule in PROJECT."""
    found = _project(project)
    new = NewSchedule(
        name=name,
        time_zone=time_zone,
        description=description,
        rotations=[parse_rotation(each) for each in rotations],
    )
    created = create_schedule(found.namespace, new, session=db.session(), now=now())
    record_schedule_change("created", found, created)
    return _shown(created)


@schedules.command("list")
@click.argument("project")
@one_transaction
def list_schedules_command(*, project: str) -> dict[str, Any]:
    """List the on-call schedules of PROJECT."""
    found = all_schedules(_project(project).id, session=db.session())
    return {"schedules": [_shown(each) for each in found]}


@schedules.command("show")
@click.argument("project")
@click.argument("schedule", metavar="SCHEDULE")
@one_transaction
def show_schedule_command(*, project: str, schedule: str) -> dict[str, Any]:
    """Show SCHEDULE, by name or number, with who is on call now and next."""
    found = _schedule(_project(project), schedule)
    (current,) = schedules_now([found], session=db.session(), now=now())
    following = current.next
    return {
        **_shown(found),
        "now": {"users": _names(current.now), "until": current.until and written(current.until)},
        "next": following and {"users": _names(following), "starts_at": written(following.start)},
    }


@schedules.command("change")
@click.argument("project")
@click.argument("schedule", metavar="SCHEDULE")
@click.option("--name", help="New name.")
@click.option("--time-zone", help="New time zone.")
@click.option("--description", help="New description.")
@click.option(
    "--rotation",
    "rotations",
    multiple=True,
    help="Replaces all rotations; same format as for `create`.",
)
@one_transaction
def change_schedule_command(
    *, project: str, schedule: str, rotations: tuple[str, ...], **given: str | None
) -> dict[str, Any]:
    """Change SCHEDULE, by name or number, from now on. Omitted options keep their values."""
    place = _project(project)
    before = _schedule(place, schedule)
    wanted = [parse_rotation(each) for each in rotations] or None
    edit = ScheduleEdit(rotations=wanted, **given)
    after = change_schedule(place.namespace, before.id, edit, session=db.session(), now=now())
    follow_change(place, before, after, by_id=None)
    return _shown(after)


@schedules.command("delete")
@click.argument("project")
@click.argument("schedule", metavar="SCHEDULE")
@one_transaction
def delete_schedule_command(*, project: str, schedule: str) -> dict[str, Any]:
    """Delete SCHEDULE, by name or number."""
    place = _project(project)
    found = _schedule(place, schedule)
    delete_schedule(place, found.id)
    return {"id": found.id, "name": found.name}


def _names(shift: Shift) -> list[str]:
    return [each.username for each in shift.people]


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


def _schedule(project: ProjectView, named: str) -> ScheduleView:
    found = find_schedule(project.id, named, session=db.session())
    number = parse_id(named)
    if found is None and number is not None:
        found = get_schedule(project.id, number, session=db.session())
    if found is None:
        message = f"{project.path} has no on-call schedule named {named}."
        raise NotFoundError(message)
    return found


def _shown(schedule: ScheduleView) -> dict[str, Any]:
    ids = {user_id for each in schedule.rotations for user_id in each.user_ids}
    named = people(ids, session=db.session())
    return {
        "id": schedule.id,
        "name": schedule.name,
        "description": schedule.description,
        "time_zone": schedule.time_zone,
        "rotations": [
            {
                "name": each.name,
                "layer": each.layer,
                "users": [named[user_id].username for user_id in each.user_ids],
                "handover": written_cadence(each.cadence),
                "starts_on": each.starts_on.isoformat(),
                "restrictions": [written_restriction(one) for one in each.restrictions],
            }
            for each in schedule.rotations
        ],
    }
