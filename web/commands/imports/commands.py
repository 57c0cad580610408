"""Import commands, with a command for each supported tool."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from flask.cli import AppGroup

from domain.core.errors import InvalidError
from domain.paging.importing.export_files import read_documents
from domain.paging.importing.grafana_oncall import build_grafana_oncall_import_plan
from domain.paging.importing.import_plan import ImportPlan
from domain.paging.importing.opsgenie import build_opsgenie_import_plan
from domain.projects.views import ProjectOrGroup
from web.commands.execution import run_in_transaction
from web.commands.imports.plan_execution import (
    UserOptions,
    execute_import_plan,
    simulate_import_plan,
)
from web.commands.path_lookup import get_namespace_by_path, get_project_by_path
from web.services import get_current_time

imports = AppGroup(
    "import", help="Import users, schedules, policies and integrations from other tools."
)

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _add_import_options(command: _Command) -> _Command:
    """Add the arguments and options shared by all import commands to a command."""
    for decorate in (
        click.option(
            "--dry-run", is_flag=True, help="Show the result of the import without storing it."
        ),
        click.option(
            "--add-members",
            is_flag=True,
            help="Give existing users the Developer role in the projects and groups that "
            "page them.",
        ),
        click.option(
            "--create-users",
            is_flag=True,
            help="Create missing users, with the Developer role in the projects and groups that "
            "page them.",
        ),
        click.option(
            "--team",
            "teams",
            multiple=True,
            metavar="NAME=PATH",
            help="Project or group for the objects of a team. Can be repeated.",
        ),
        click.option(
            "--integrations",
            metavar="GROUP/PROJECT",
            help="Project for the integrations of teams that are imported into groups.",
        ),
        click.option(
            "--into",
            "--project",
            "into",
            metavar="PATH",
            help="Project or group for all other objects.",
        ),
        click.argument("file", type=click.Path(exists=True, path_type=Path)),
    ):
        command = decorate(command)
    return command


@imports.command("grafana-oncall")
@_add_import_options
@run_in_transaction
def grafana_oncall_command(**options: Any) -> dict[str, Any]:
    """Import an export of Grafana OnCall from FILE.

    FILE contains responses from Grafana OnCall's API. It is a JSON file, or a folder or zip archive
    of JSON files.
    """
    return {"source": "grafana-oncall", **_run_import(build_grafana_oncall_import_plan, **options)}


@imports.command("opsgenie")
@_add_import_options
@run_in_transaction
def opsgenie_command(**options: Any) -> dict[str, Any]:
    """Import an Opsgenie backup from FILE.

    FILE is a folder or zip archive written by opsgenie-configuration-backup.
    """
    return {"source": "opsgenie", **_run_import(build_opsgenie_import_plan, **options)}


def _run_import(
    read_plan: Callable[..., ImportPlan],
    *,
    file: Path,
    into: str | None,
    integrations: str | None,
    teams: tuple[str, ...],
    dry_run: bool,
    **people: bool,
) -> dict[str, Any]:
    plan = read_plan(read_documents(file), now=get_current_time())
    if into is None and not teams:
        names = ", ".join(sorted(plan.teams.values())) or "none"
        raise InvalidError(
            "Specify the project or group to import into with `--into PATH`, or with "
            f"`--team NAME=PATH` for each team. Teams in this export: {names}."
        )
    do = simulate_import_plan if dry_run else execute_import_plan
    return do(
        plan,
        by_team=dict(_parse_team_target(each, plan) for each in teams),
        otherwise=get_namespace_by_path(into) if into else None,
        integration_project=get_project_by_path(integrations) if integrations else None,
        options=UserOptions(
            creates_users=people["create_users"], adds_members=people["add_members"]
        ),
    )


def _parse_team_target(text: str, plan: ImportPlan) -> tuple[str, ProjectOrGroup]:
    name, separator, path = text.rpartition("=")
    known = {each.lower() for each in plan.teams.values()}
    if not separator or name.strip().lower() not in known:
        names = ", ".join(sorted(plan.teams.values())) or "none"
        message = f'`--team` "{text}" is not NAME=PATH. Teams in this export: {names}.'
        raise InvalidError(message)
    return name.strip().lower(), get_namespace_by_path(path.strip())
