"""Commands about heartbeats."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.clock import written
from domain.database.paging import ListPart
from domain.durations import duration_text, parse_duration
from domain.grace_period import GracePeriod
from domain.heartbeats import heartbeats as domain
from domain.heartbeats.heartbeats import MOST, SEVERITIES, HeartbeatDetails, HeartbeatView
from domain.heartbeats.schedules import Schedule
from domain.projects.access import follow_to_project
from domain.projects.views import ProjectView, Viewer
from web.api.schemas.heartbeats import HeartbeatChange
from web.commands.transaction import one_transaction
from web.extensions import db
from web.heartbeats import actions
from web.services import now

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)

heartbeats = AppGroup("heartbeats", help="Heartbeats: alerts when a job does not report.")


@heartbeats.command("create")
@click.argument("project")
@click.option("--name", required=True, help="Name of the job, shown in the title of its alerts.")
@click.option("--every", help="Interval between two pings: 30s, 5m, 1h30m, 2d. At least 1s.")
@click.option("--cron", help="Instead of --every: five fields, such as '30 3 * * 1-5'.")
@click.option("--time-zone", default="UTC", show_default=True, help="Time zone of --cron.")
@click.option("--grace", default="1m", show_default=True, help="How late a ping may be.")
@click.option("--severity", type=click.Choice(SEVERITIES), default="critical", show_default=True)
@click.option("--environment", default="", help="The environment of its alerts.")
@click.option("--description", default="", help="Description, shown on its alerts.")
@one_transaction
def create_command(
    *, project: str, every: str | None, cron: str | None, time_zone: str, grace: str, **texts: str
) -> dict[str, Any]:
    """Create a heartbeat in PROJECT and print the URL that the job requests."""
    schedule = Schedule(
        every=parse_duration(every, field="every") if every else None,
        cron=cron or None,
        time_zone=time_zone,
        grace=parse_duration(grace, field="grace"),
    )
    made, url = actions.create(_project(project), HeartbeatDetails(schedule=schedule, **texts))
    return {"id": made.id, "url": url}


@heartbeats.command("list")
@click.argument("project")
@one_transaction
def list_command(*, project: str) -> dict[str, Any]:
    """List the heartbeats of PROJECT with their states."""
    found = domain.list_heartbeats(
        _project(project).id, ListPart(size=MOST), session=db.session(), now=now()
    )
    return {"heartbeats": [_as_json(each) for each in found.items]}


@heartbeats.command("show")
@click.argument("project")
@click.argument("heartbeat_id", type=int)
@one_transaction
def show_command(*, project: str, heartbeat_id: int) -> dict[str, Any]:
    """Show a heartbeat of PROJECT with its state."""
    return _as_json(actions.get(_project(project), heartbeat_id))


@heartbeats.command("change")
@click.argument("project")
@click.argument("heartbeat_id", type=int)
@click.option("--name", help="New name.")
@click.option("--every", help="Interval between two pings, instead of a cron expression.")
@click.option("--cron", help="Five fields, instead of an interval.")
@click.option("--time-zone", help="Time zone of --cron.")
@click.option("--grace", help="How late a ping may be.")
@click.option("--severity", type=click.Choice(SEVERITIES))
@click.option("--environment", help="The environment that its alerts name.")
@click.option("--description", help="Description, shown on its alerts.")
@one_transaction
def change_command(*, project: str, heartbeat_id: int, **given: str | None) -> dict[str, Any]:
    """Change a heartbeat of PROJECT. Omitted options keep their values."""
    place = _project(project)
    wanted: dict[str, Any] = {
        name: parse_duration(text, field=name) if text and name in {"every", "grace"} else text
        for name, text in given.items()
    }
    change = HeartbeatChange.model_construct(**wanted)
    details = change.of(actions.get(place, heartbeat_id).details)
    return _as_json(actions.change(place, heartbeat_id, details))


@heartbeats.command("pause")
@click.argument("project")
@click.argument("heartbeat_id", type=int)
@one_transaction
def pause_command(*, project: str, heartbeat_id: int) -> dict[str, Any]:
    """Pause a heartbeat; its open alert is resolved."""
    return _as_json(actions.pause(_project(project), heartbeat_id))


@heartbeats.command("resume")
@click.argument("project")
@click.argument("heartbeat_id", type=int)
@one_transaction
def resume_command(*, project: str, heartbeat_id: int) -> dict[str, Any]:
    """Resume a heartbeat; the next ping is expected as if one had arrived now."""
    return _as_json(actions.resume(_project(project), heartbeat_id))


@heartbeats.command("reset-url")
@click.argument("project")
@click.argument("heartbeat_id", type=int)
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.NOW.key,
    show_default=True,
    help="How long the old URL stays valid.",
)
@one_transaction
def reset_url_command(*, project: str, heartbeat_id: int, overlap: str) -> dict[str, Any]:
    """Replace the URL and print the new one."""
    length = GracePeriod.of(overlap).length
    made = actions.reset_url(_project(project), heartbeat_id, previous_for=length)
    return {"id": heartbeat_id, "url": actions.ping_url(made.clear)}


@heartbeats.command("delete")
@click.argument("project")
@click.argument("heartbeat_id", type=int)
@one_transaction
def delete_command(*, project: str, heartbeat_id: int) -> dict[str, Any]:
    """Delete a heartbeat and its log; the open alert is resolved."""
    removed = actions.remove(_project(project), heartbeat_id)
    return {"id": removed.id, "name": removed.name}


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


def _as_json(view: HeartbeatView) -> dict[str, Any]:
    schedule = view.schedule
    return {
        "id": view.id,
        "name": view.name,
        "state": view.state.value,
        "every": None if schedule.every is None else duration_text(schedule.every),
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "grace": duration_text(schedule.grace),
        "last_ping_at": written(view.last_ping_at) if view.last_ping_at else None,
        "next_expected_at": written(view.expected_at) if view.expected_at else None,
        "alert_iid": view.alert_iid,
    }
