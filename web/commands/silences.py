"""Commands about silences, maintenance windows and alerts that flap."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from flask.cli import AppGroup

from domain.alerts.matching.conditions import conditions_from, matchers_from
from domain.audit.events import EventKind
from domain.database.paging import ListPart
from domain.durations import parse_duration
from domain.errors import InvalidError
from domain.projects.access import follow_to_project
from domain.projects.views import ProjectView, Viewer
from domain.silences import flapping
from domain.silences import silences as domain
from domain.silences import windows as window_domain
from domain.silences.recurrence import Frequency, Recurrence, parse_rule
from domain.silences.silences import NewSilence, SilenceChange, SilenceState, SilenceView
from domain.silences.windows import NewWindow
from web.alerts.silences import (
    longest_silence,
    record_flap_settings,
    record_silence,
    record_window,
    silence_url,
)
from web.api.schemas.silences.maintenance_windows import (
    FlapSettingsBody,
    FlapSettingsResource,
    MaintenanceWindow,
    WindowChange,
    read_local_time,
)
from web.api.schemas.silences.silences import Silence, later
from web.commands.transaction import one_transaction
from web.extensions import db
from web.services import now

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)
#: More silences than a project can have that have not ended.
_MOST_LISTED = 1_000
_REPEATS = [each.value.lower() for each in Frequency]

silences = AppGroup("silences", help="Silences: matching alerts page nobody for a time.")
maintenance_windows = AppGroup(
    "maintenance-windows", help="Times, once or recurring, at which alerts page nobody."
)
flap_settings = AppGroup("flap-settings", help="How alerts that open repeatedly page.")


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


def _shown(project: ProjectView, view: SilenceView) -> dict[str, Any]:
    url = silence_url(project.path, view.id)
    return Silence.of(view, now=now(), web_url=url).model_dump(mode="json")


def _length(text: str) -> timedelta:
    return parse_duration(text, field="for")


@silences.command("create")
@click.argument("project")
@click.option(
    "--matcher",
    "matchers",
    multiple=True,
    required=True,
    help="""Such as 'service="web"'. Can be repeated; all have to match.""",
)
@click.option("--for", "length", required=True, help="How long: 30m, 2h, 1d12h.")
@click.option("--starts", help="When it starts, such as 2026-12-06T02:00:00Z; by default now.")
@click.option("--comment", default="", help="Why.")
@one_transaction
def create_silence_command(
    *, project: str, matchers: Sequence[str], length: str, starts: str | None, comment: str
) -> dict[str, Any]:
    """Silence alerts of PROJECT."""
    found = _project(project)
    begin = _moment(starts) if starts else now()
    wanted = NewSilence(
        matchers=matchers_from(list(matchers), field="matcher"),
        comment=comment,
        starts_at=begin,
        ends_at=later(begin, _length(length), field="for"),
    )
    made = domain.create_silence(
        *(found.id, wanted), by=None, longest=longest_silence(), session=db.session(), now=now()
    )
    record_silence(EventKind.SILENCE_CREATED, found.path, made)
    return _shown(found, made)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"“{text[:40]}” is not a time such as 2026-12-06T02:00:00Z."
        raise InvalidError(message, field="starts") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@silences.command("list")
@click.argument("project")
@click.option("--state", type=click.Choice([each.value for each in SilenceState]))
@one_transaction
def list_silences_command(*, project: str, state: str | None) -> dict[str, Any]:
    """List the silences of PROJECT, newest first; at most 1,000."""
    found = _project(project)
    wanted = SilenceState(state) if state else None
    part = ListPart(size=_MOST_LISTED, is_descending=True)
    listed = domain.numbered_silences(found.id, wanted, part, session=db.session(), now=now())
    return {"silences": [_shown(found, view) for view in listed.items], "total": listed.total}


@silences.command("show")
@click.argument("project")
@click.argument("silence_id", metavar="ID", type=int)
@one_transaction
def show_silence_command(*, project: str, silence_id: int) -> dict[str, Any]:
    """Show a silence of PROJECT."""
    found = _project(project)
    return _shown(found, domain.get_silence(found.id, silence_id, session=db.session()))


@silences.command("change")
@click.argument("project")
@click.argument("silence_id", metavar="ID", type=int)
@click.option("--for", "length", help="How long from now: 30m, 2h, 1d12h.")
@click.option("--comment", help="Why.")
@one_transaction
def change_silence_command(
    *, project: str, silence_id: int, length: str | None, comment: str | None
) -> dict[str, Any]:
    """Change the end or the comment of a silence of PROJECT."""
    found = _project(project)
    ends_at = later(now(), _length(length), field="for") if length else None
    change = SilenceChange(ends_at=ends_at, comment=comment)
    changed = domain.change_silence(
        *(found.id, silence_id, change),
        longest=longest_silence(),
        session=db.session(),
        now=now(),
    )
    record_silence(EventKind.SILENCE_CHANGED, found.path, changed)
    return _shown(found, changed)


@silences.command("expire")
@click.argument("project")
@click.argument("silence_id", metavar="ID", type=int)
@one_transaction
def expire_silence_command(*, project: str, silence_id: int) -> dict[str, Any]:
    """End a silence of PROJECT now."""
    found = _project(project)
    ended = domain.expire_silence(found.id, silence_id, by=None, session=db.session(), now=now())
    record_silence(EventKind.SILENCE_EXPIRED, found.path, ended)
    return _shown(found, ended)


@maintenance_windows.command("create")
@click.argument("project")
@click.option("--name", required=True, help="What it is for.")
@click.option("--starts", required=True, help="Local time, or one with an offset.")
@click.option("--for", "length", required=True, help="How long: 90m, 2h.")
@click.option("--time-zone", default="UTC", show_default=True, help="Such as Europe/Berlin.")
@click.option("--repeat", type=click.Choice(_REPEATS), help="How often; by default once.")
@click.option("--rule", help="A rule of RFC 5545 instead, such as 'FREQ=MONTHLY;BYDAY=-1SU'.")
@click.option("--severity", "severities", multiple=True, help="Only alerts of this severity.")
@click.option("--environment", "environments", multiple=True, help="* stands for any characters.")
@click.option("--service", "services", multiple=True, help="* stands for any characters.")
@click.option("--matcher", "labels", multiple=True, help="""Such as 'host=~"db-.*"'.""")
@one_transaction
def create_window_command(
    *, project: str, name: str, starts: str, length: str, time_zone: str, **given: Any
) -> dict[str, Any]:
    """Create a maintenance window of PROJECT. Options of conditions can be given several times."""
    found = _project(project)
    conditions = {
        each: list(given[each]) for each in ("severities", "environments", "services", "labels")
    }
    wanted = NewWindow(
        name=name,
        local_start=read_local_time(starts, time_zone),
        length=_length(length),
        time_zone=time_zone,
        recurrence=_recurrence(given["repeat"], given["rule"]),
        conditions=conditions_from(conditions),
    )
    made = window_domain.create_window(found.id, wanted, by=None, session=db.session(), now=now())
    record_window(EventKind.MAINTENANCE_WINDOW_CREATED, found.path, made)
    return MaintenanceWindow.of(made, now()).model_dump(mode="json")


def _recurrence(repeat: str | None, rule: str | None) -> Recurrence | None:
    if rule and repeat:
        message = "Use --repeat or --rule, not both."
        raise InvalidError(message, field="rule")
    if rule:
        return parse_rule(rule)
    return Recurrence(frequency=Frequency(repeat.upper())) if repeat else None


@maintenance_windows.command("list")
@click.argument("project")
@one_transaction
def list_windows_command(*, project: str) -> dict[str, Any]:
    """List the maintenance windows of PROJECT with their next occurrences."""
    found = _project(project)
    part = ListPart(size=_MOST_LISTED, is_descending=True)
    listed = window_domain.numbered_windows(found.id, part, session=db.session())
    shown = [MaintenanceWindow.of(view, now()).model_dump(mode="json") for view in listed.items]
    return {"maintenance_windows": shown, "total": listed.total}


@maintenance_windows.command("show")
@click.argument("project")
@click.argument("window_id", metavar="ID", type=int)
@one_transaction
def show_window_command(*, project: str, window_id: int) -> dict[str, Any]:
    """Show a maintenance window of PROJECT."""
    found = window_domain.get_window(_project(project).id, window_id, session=db.session())
    return MaintenanceWindow.of(found, now()).model_dump(mode="json")


@maintenance_windows.command("change")
@click.argument("project")
@click.argument("window_id", metavar="ID", type=int)
@click.option("--name", help="What it is for.")
@click.option("--starts", "starts_at", help="Local time, such as 2026-12-06T02:00.")
@click.option("--for", "duration", help="How long: 90m, 2h.")
@click.option("--time-zone", help="Such as Europe/Berlin.")
@click.option("--rule", help="A rule of RFC 5545; an empty string for once.")
@one_transaction
def change_window_command(*, project: str, window_id: int, **given: Any) -> dict[str, Any]:
    """Change a maintenance window of PROJECT. Omitted options keep their values."""
    found, session = _project(project), db.session()
    present = window_domain.get_window(found.id, window_id, session=session)
    wanted = WindowChange.model_construct(**given).wanted(present)
    changed = window_domain.change_window(found.id, window_id, wanted, session=session, now=now())
    record_window(EventKind.MAINTENANCE_WINDOW_CHANGED, found.path, changed)
    return MaintenanceWindow.of(changed, now()).model_dump(mode="json")


@maintenance_windows.command("delete")
@click.argument("project")
@click.argument("window_id", metavar="ID", type=int)
@one_transaction
def delete_window_command(*, project: str, window_id: int) -> dict[str, Any]:
    """Delete a maintenance window of PROJECT."""
    found = _project(project)
    window = window_domain.get_window(found.id, window_id, session=db.session())
    window_domain.delete_window(found.id, window_id, session=db.session())
    record_window(EventKind.MAINTENANCE_WINDOW_DELETED, found.path, window)
    return {"id": window.id, "deleted": True}


@flap_settings.command("show")
@click.argument("project")
@one_transaction
def show_flap_settings_command(*, project: str) -> dict[str, Any]:
    """Show the flap detection of PROJECT."""
    stored = flapping.get_settings(_project(project).id, session=db.session())
    return FlapSettingsResource.of(stored).model_dump()


@flap_settings.command("set")
@click.argument("project")
@click.option("--on/--off", "enabled", default=None, help="Flap detection.")
@click.option("--openings", type=int, help="More openings than this are flapping …")
@click.option("--within-minutes", type=int, help="… within this many minutes.")
@click.option(
    "--hold-minutes", type=int, help="Minutes after which the same people are paged again."
)
@click.option(
    "--hold-critical/--page-critical",
    "holds_critical",
    default=None,
    help="Whether critical alerts are held back as well.",
)
@click.option("--reopen-minutes", type=int, help="The reopen window; 0 for none.")
@one_transaction
def set_flap_settings_command(*, project: str, **given: Any) -> dict[str, Any]:
    """Change the flap detection of PROJECT."""
    found = _project(project)
    present = flapping.get_settings(found.id, session=db.session())
    wanted = FlapSettingsBody.model_construct(**given).wanted(present)
    stored = flapping.store_settings(found.id, wanted, session=db.session())
    record_flap_settings(found.path, stored)
    return FlapSettingsResource.of(stored).model_dump()
