"""Commands for groups and projects, including the commands generated from actions."""

from collections.abc import Mapping
from typing import Any

import click

from domain.access.actor import UnitOfWork
from domain.core.errors import InvalidError
from domain.projects import group_actions, project_actions, shares
from domain.projects.access import resolve_group
from domain.projects.deletion import count_contents
from domain.projects.namespace_changes import check_path_valid
from domain.projects.types import GroupTransfer, NewGroup, NewProject
from domain.projects.views import GroupView, ProjectOrGroup
from domain.projects.visibility_sql import VISIBILITIES
from web.commands.action_commands import (
    build_command,
    build_command_group,
    create_unit_of_work_for_user,
)
from web.commands.execution import run_in_transaction
from web.commands.path_lookup import COMMAND_LINE_VIEWER, get_project_by_path
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

groups = build_command_group("groups", group_actions.__name__, "Manage groups.")
projects = build_command_group("projects", project_actions.__name__, "Manage projects.")
projects.add_command(build_command(shares.share_project))
projects.add_command(build_command(shares.unshare_project))
_OWNER_OPTION = click.option("--owner", help="User who becomes the owner.")
_YES_OPTION = click.option(
    "--yes",
    is_flag=True,
    help="Confirm the deletion. Without this option, only the contents are listed.",
)


@groups.command("create")
@click.argument("path")
@_OWNER_OPTION
@run_in_transaction
def create_group_command(*, path: str, owner: str | None) -> Mapping[str, Any]:
    """Create the group PATH. For a subgroup such as `acme/shops`, `acme` must exist."""
    above, segment = _split_path(path)
    new = NewGroup(path=segment, parent_id=_get_group(above).id if above else None)
    return group_actions.create_group(_create_unit_of_work_for_owner(owner), new).model_dump(
        mode="json"
    )


@projects.command("create")
@click.argument("path", metavar="GROUP/NAME")
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    default="private",
    show_default=True,
    help="Users who can see the project: members, signed-in users, or everyone.",
)
@_OWNER_OPTION
@run_in_transaction
def create_project_command(*, path: str, visibility: Any, owner: str | None) -> Mapping[str, Any]:
    """Create the project GROUP/NAME. GROUP must exist, or be the username of the owner."""
    above, segment = _split_path(path)
    if not above:
        raise InvalidError("`GROUP/NAME` must contain a group.", field="path")
    holder = None if owner == above else _get_group(above).id
    new = NewProject(path=segment, namespace_id=holder, visibility=visibility)
    return project_actions.create_project(_create_unit_of_work_for_owner(owner), new).model_dump(
        mode="json"
    )


@groups.command("transfer")
@click.argument("path")
@click.argument("parent", required=False)
@run_in_transaction
def transfer_group(*, path: str, parent: str | None) -> Mapping[str, Any]:
    """Transfer the group PATH to the group PARENT, or to the top level if PARENT is omitted."""
    transfer = GroupTransfer(group_id=_get_group(parent).id if parent else None)
    return group_actions.transfer_group(get_unit_of_work(), _get_group(path), transfer).model_dump(
        mode="json"
    )


@groups.command("delete")
@click.argument("path")
@_YES_OPTION
@run_in_transaction
def delete_group(*, path: str, yes: bool) -> Mapping[str, Any]:
    """Delete the group PATH with its subgroups and projects. This cannot be undone."""
    group = _get_group(path)
    answer = _confirm_and_count_contents(group, yes)
    group_actions.delete_group(get_unit_of_work(), group)
    return answer


@projects.command("delete")
@click.argument("path")
@_YES_OPTION
@run_in_transaction
def delete_project(*, path: str, yes: bool) -> Mapping[str, Any]:
    """Delete the project PATH. This cannot be undone."""
    project = get_project_by_path(path.strip("/"))
    answer = _confirm_and_count_contents(project, yes)
    project_actions.delete_project(get_unit_of_work(), project)
    return answer


_list_all_projects_command = build_command(project_actions.list_projects)
_list_group_projects_command = build_command(group_actions.list_group_projects)


def list_projects(*, group: str | None, **options: Any) -> None:
    """List all projects, or the projects of a group and its subgroups."""
    if group is None:
        _list_all_projects_command.callback(**options)  # type: ignore[misc]
    else:
        inside = {"target": group, "include_subgroups": True}
        _list_group_projects_command.callback(**options, **inside)  # type: ignore[misc]


projects.add_command(
    click.Command(
        "list",
        callback=list_projects,
        params=[
            click.Option(["--group"], help="List only projects in this group and its subgroups."),
            *_list_all_projects_command.params,
        ],
        help=_list_all_projects_command.help,
    )
)


def _add_former_path_commands(commands: click.Group, word: str) -> None:
    @commands.command("former-paths", help=f"List the previous paths of the {word} PATH.")
    @click.argument("path")
    @run_in_transaction
    def list_them(*, path: str) -> Mapping[str, Any]:
        holder = _get_project_or_group(path, word)
        found = project_actions.list_namespace_former_paths(get_unit_of_work(), holder)
        return {"path": holder.path, "former_paths": [each.path for each in found]}

    @commands.command(
        "release-path",
        help=f"Release the previous path FORMER of the {word} PATH, so that it can be used again.",
    )
    @click.argument("path")
    @click.argument("former")
    @run_in_transaction
    def release(*, path: str, former: str) -> Mapping[str, Any]:
        unit, holder = get_unit_of_work(), _get_project_or_group(path, word)
        found = project_actions.list_namespace_former_paths(unit, holder)
        wanted = next((each.id for each in found if each.path.lower() == former.lower()), 0)
        released = project_actions.release_path(unit, holder, wanted)
        return {"path": holder.path, "released": released}


_add_former_path_commands(groups, "group")
_add_former_path_commands(projects, "project")


def _split_path(path: str) -> tuple[str, str]:
    """Return the path of the parent group and the last segment.

    Raise InvalidError if the path is invalid.
    """
    clean = path.strip("/")
    # The action rejects reserved names. A path that is too long has no parent group.
    check_path_valid(clean, reserved=frozenset())
    above, _, segment = clean.rpartition("/")
    return above, segment


def _get_group(path: str) -> GroupView:
    return resolve_group(path.strip("/"), COMMAND_LINE_VIEWER, session=db.session())


def _get_project_or_group(path: str, word: str) -> ProjectOrGroup:
    return _get_group(path) if word == "group" else get_project_by_path(path.strip("/"))


def _create_unit_of_work_for_owner(owner: str | None) -> UnitOfWork:
    """Return a unit of work in which a user becomes the owner of created objects."""
    return get_unit_of_work() if owner is None else create_unit_of_work_for_user(owner)


def _confirm_and_count_contents(holder: ProjectOrGroup, is_confirmed: object) -> Mapping[str, Any]:
    """Return the ID, the path and the item counts of a group or project.

    Raise InvalidError unless the deletion is confirmed.
    """
    found = count_contents(holder.namespace, session=db.session())
    if is_confirmed:
        contents = {each.plural: each.count for each in found}
        return {"id": holder.id, "path": holder.path, "contents": contents}
    inside = ", ".join(
        f"{each.count:,} {each.word if each.count == 1 else each.plural}" for each in found
    )
    raise InvalidError(f"{holder.path} contains {inside or 'nothing'}. Use `--yes` to delete it.")
