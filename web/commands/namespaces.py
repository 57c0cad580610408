"""Commands for groups and projects, including the commands generated from actions."""

from collections.abc import Mapping
from typing import Any

import click

from domain.access.actor import Work
from domain.core.errors import InvalidError
from domain.projects import group_actions, project_actions, shares
from domain.projects.access import follow_to_group
from domain.projects.creation import check_valid
from domain.projects.deletion import contents_of
from domain.projects.types import GroupTransfer, NewGroup, NewProject
from domain.projects.views import GroupView, Holder
from domain.projects.visibility_sql import VISIBILITIES
from web.commands.generated import command_of, commands_of, work_for_user
from web.commands.transaction import OPERATOR, one_transaction, project_at
from web.extensions import db
from web.http.work import work

groups = commands_of("groups", group_actions.__name__, "Manage groups.")
projects = commands_of("projects", project_actions.__name__, "Manage projects.")
projects.add_command(command_of(shares.share_project))
projects.add_command(command_of(shares.unshare_project))
_OWNER = click.option("--owner", help="User who becomes the owner.")
_YES = click.option(
    "--yes", is_flag=True, help="Confirm the deletion. Without it, only the contents are listed."
)


@groups.command("create")
@click.argument("path")
@_OWNER
@one_transaction
def create_group_command(*, path: str, owner: str | None) -> Mapping[str, Any]:
    """Create the group PATH. For a subgroup such as `acme/shops`, `acme` must exist."""
    above, segment = _split(path)
    new = NewGroup(path=segment, parent_id=_group(above).id if above else None)
    return group_actions.create_group(_work_for(owner), new).model_dump(mode="json")


@projects.command("create")
@click.argument("path", metavar="GROUP/NAME")
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    default="private",
    show_default=True,
    help="Users who can see the project: members, signed-in users, or everyone.",
)
@_OWNER
@one_transaction
def create_project_command(*, path: str, visibility: Any, owner: str | None) -> Mapping[str, Any]:
    """Create the project GROUP/NAME. GROUP must exist, or be the user name of the owner."""
    above, segment = _split(path)
    if not above:
        raise InvalidError("`GROUP/NAME` must contain a group.", field="path")
    holder = None if owner == above else _group(above).id
    new = NewProject(path=segment, namespace_id=holder, visibility=visibility)
    return project_actions.create_project(_work_for(owner), new).model_dump(mode="json")


@groups.command("transfer")
@click.argument("path")
@click.argument("parent", required=False)
@one_transaction
def transfer_group(*, path: str, parent: str | None) -> Mapping[str, Any]:
    """Transfer the group PATH to the group PARENT, or to the top level without PARENT."""
    transfer = GroupTransfer(group_id=_group(parent).id if parent else None)
    return group_actions.transfer_group(work(), _group(path), transfer).model_dump(mode="json")


@groups.command("delete")
@click.argument("path")
@_YES
@one_transaction
def delete_group(*, path: str, yes: bool) -> Mapping[str, Any]:
    """Delete the group PATH with its subgroups and projects. This cannot be undone."""
    group = _group(path)
    answer = _confirmed(group, yes)
    group_actions.delete_group(work(), group)
    return answer


@projects.command("delete")
@click.argument("path")
@_YES
@one_transaction
def delete_project(*, path: str, yes: bool) -> Mapping[str, Any]:
    """Delete the project PATH. This cannot be undone."""
    project = project_at(path.strip("/"))
    answer = _confirmed(project, yes)
    project_actions.delete_project(work(), project)
    return answer


_list_projects = command_of(project_actions.list_projects)
_list_group_projects = command_of(group_actions.list_group_projects)


def list_projects(*, group: str | None, **options: Any) -> None:
    """List all projects, or the projects of a group and its subgroups."""
    if group is None:
        _list_projects.callback(**options)  # type: ignore[misc]
    else:
        inside = {"target": group, "include_subgroups": True}
        _list_group_projects.callback(**options, **inside)  # type: ignore[misc]


projects.add_command(
    click.Command(
        "list",
        callback=list_projects,
        params=[
            click.Option(["--group"], help="List only projects in this group and its subgroups."),
            *_list_projects.params,
        ],
        help=_list_projects.help,
    )
)


def _add_former_paths(commands: click.Group, word: str) -> None:
    @commands.command("former-paths", help=f"List the former paths of the {word} PATH.")
    @click.argument("path")
    @one_transaction
    def list_them(*, path: str) -> Mapping[str, Any]:
        holder = _holder(path, word)
        found = project_actions.show_former_paths(work(), holder)
        return {"path": holder.path, "former_paths": [each.path for each in found]}

    @commands.command(
        "release-path",
        help=f"Release the former path FORMER of the {word} PATH, so that it can be used again.",
    )
    @click.argument("path")
    @click.argument("former")
    @one_transaction
    def release(*, path: str, former: str) -> Mapping[str, Any]:
        unit, holder = work(), _holder(path, word)
        found = project_actions.show_former_paths(unit, holder)
        wanted = next((each.id for each in found if each.path.lower() == former.lower()), 0)
        released = project_actions.release_path(unit, holder, wanted)
        return {"path": holder.path, "released": released}


_add_former_paths(groups, "group")
_add_former_paths(projects, "project")


def _split(path: str) -> tuple[str, str]:
    """Return the path of the parent group and the last segment.

    Raise InvalidError if the path is invalid.
    """
    clean = path.strip("/")
    # The action rejects reserved names. A path that is too long has no parent group.
    check_valid(clean, reserved=frozenset())
    above, _, segment = clean.rpartition("/")
    return above, segment


def _group(path: str) -> GroupView:
    return follow_to_group(path.strip("/"), OPERATOR, session=db.session())


def _holder(path: str, word: str) -> Holder:
    return _group(path) if word == "group" else project_at(path.strip("/"))


def _work_for(owner: str | None) -> Work:
    """Return a unit of work in which a user owns what the operator creates."""
    return work() if owner is None else work_for_user(owner)


def _confirmed(holder: Holder, is_confirmed: object) -> Mapping[str, Any]:
    """Return the contents of a group or project.

    Raise InvalidError unless the deletion is confirmed.
    """
    found = contents_of(holder.namespace, session=db.session())
    if is_confirmed:
        contents = {each.plural: each.count for each in found}
        return {"id": holder.id, "path": holder.path, "contents": contents}
    inside = ", ".join(
        f"{each.count:,} {each.word if each.count == 1 else each.plural}" for each in found
    )
    raise InvalidError(f"{holder.path} contains {inside or 'nothing'}. Use `--yes` to delete it.")
