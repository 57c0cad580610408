"""Commands that rename, move and delete groups and projects."""

from dataclasses import replace
from typing import Any

import click

from domain.errors import InvalidError
from domain.projects import deletion, editing, moving
from domain.projects.changes import archived, deleted, edited, path_released, unarchived
from domain.projects.contents import contents_of
from domain.projects.editing import Changes
from domain.projects.former_paths import list_former_paths, release_former_path
from domain.projects.grants import VISIBILITIES
from domain.projects.members import OPERATOR, get_namespace
from domain.projects.transfers import keep_owned
from domain.projects.views import Namespace
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.http.routes import reserved_names
from web.services import now

_MOST = 1_000


@click.command("change")
@click.argument("path")
@click.option("--name", help="New display name.")
@click.option("--description", help="New description.")
@click.option("--path", "segment", help="New last part of the path. The old URLs keep working.")
@one_transaction
def change_group(
    *, path: str, name: str | None, description: str | None, segment: str | None
) -> dict[str, Any]:
    """Change the name, the description or the path of the group PATH."""
    group, session = _get(path, "group"), db.session()
    edit = editing.GroupEdit(name=name, description=description)
    moved = {} if segment is None else _renamed(group, segment)
    changes = {**moved, **editing.edit_group(group.group_id or 0, edit, session=session)}
    return _done(group, changes)


@click.command("change")
@click.argument("path")
@click.option("--name", help="New display name.")
@click.option("--description", help="New description.")
@click.option("--visibility", type=click.Choice(VISIBILITIES), help="New visibility.")
@click.option("--path", "segment", help="New last part of the path. The old URLs keep working.")
@one_transaction
def change_project(
    *,
    path: str,
    name: str | None,
    description: str | None,
    visibility: str | None,
    segment: str | None,
) -> dict[str, Any]:
    """Change the name, the description, the visibility or the path of the project PATH."""
    project, session = _get(path, "project"), db.session()
    moved = {} if segment is None else _renamed(project, segment)
    edit = editing.ProjectEdit(name=name, description=description, visibility=visibility)
    number = project.project_id or 0
    changes = {**moved, **editing.edit_project(number, edit, by=OPERATOR, session=session)}
    return _done(project, changes)


@click.command("transfer")
@click.argument("path")
@click.argument("parent", required=False)
@one_transaction
def transfer_group(*, path: str, parent: str | None) -> dict[str, Any]:
    """Move the group PATH into the group PARENT, or without one to the top level."""
    group, session = _get(path, "group"), db.session()
    above = _get(parent, "group").path if parent else None
    changes = moving.transfer_group(
        group.group_id or 0, above, reserved=reserved_names(), session=session, now=now()
    )
    keep_owned(_after(group, changes), None, session=session, now=now())
    return _done(group, changes)


@click.command("transfer")
@click.argument("path")
@click.argument("group")
@one_transaction
def transfer_project(*, path: str, group: str) -> dict[str, Any]:
    """Move the project PATH into the group GROUP. The old URLs keep working."""
    project, target = _get(path, "project"), _get(group, "group").path
    changes = moving.transfer_project(
        project.project_id or 0, target, session=db.session(), now=now()
    )
    return _done(project, changes)


@click.command("delete")
@click.argument("path")
@click.option(
    "--yes", is_flag=True, help="Delete. Without it, the command lists what would be deleted."
)
@one_transaction
def delete_group(*, path: str, yes: bool) -> dict[str, Any]:
    """Delete the group PATH with its subgroups and projects; this cannot be undone."""
    group, session = _get(path, "group"), db.session()
    answer = _confirmed(group, yes)
    paths = deletion.delete_group(group, session=session, now=now())
    record_event(deleted(group, projects=len(paths)))
    return answer


@click.command("delete")
@click.argument("path")
@click.option(
    "--yes", is_flag=True, help="Delete. Without it, the command lists what would be deleted."
)
@one_transaction
def delete_project(*, path: str, yes: bool) -> dict[str, Any]:
    """Delete the project PATH; this cannot be undone."""
    project, session = _get(path, "project"), db.session()
    answer = _confirmed(project, yes)
    deletion.delete_project(project, session=session, now=now())
    record_event(deleted(project))
    return answer


@click.command("archive")
@click.argument("path")
@one_transaction
def archive_project(*, path: str) -> dict[str, Any]:
    """Archive the project PATH: it accepts no changes, pushes or alerts."""
    project = _get(path, "project")
    if editing.archive(project.project_id or 0, session=db.session(), now=now()):
        record_event(archived(project))
    return {"id": project.id, "path": project.path, "archived": True}


@click.command("unarchive")
@click.argument("path")
@one_transaction
def unarchive_project(*, path: str) -> dict[str, Any]:
    """Unarchive the project PATH: it accepts changes, pushes and alerts again."""
    project = _get(path, "project")
    if editing.unarchive(project.project_id or 0, session=db.session()):
        record_event(unarchived(project))
    return {"id": project.id, "path": project.path, "archived": False}


def _former_paths(word: str) -> tuple[click.Command, click.Command]:
    @click.command("former-paths", help=f"List the former paths of the {word} PATH.")
    @click.argument("path")
    @one_transaction
    def list_them(*, path: str) -> dict[str, Any]:
        place = _get(path, word)
        found = list_former_paths(place, most=_MOST, session=db.session())
        return {"path": place.path, "former_paths": [each.path for each in found]}

    @click.command(
        "release-path", help=f"Let others use the former path FORMER of the {word} PATH."
    )
    @click.argument("path")
    @click.argument("former")
    @one_transaction
    def release(*, path: str, former: str) -> dict[str, Any]:
        place, session = _get(path, word), db.session()
        found = list_former_paths(place, most=_MOST, session=session)
        wanted = next((each.id for each in found if each.path.lower() == former.lower()), 0)
        released = release_former_path(place, wanted, session=session)
        record_event(path_released(place, released))
        return {"path": place.path, "released": released}

    return list_them, release


#: Of `gatebell groups`, and of `gatebell projects`.
GROUP_COMMANDS = (change_group, transfer_group, delete_group, *_former_paths("group"))
PROJECT_COMMANDS = (
    change_project,
    transfer_project,
    archive_project,
    unarchive_project,
    delete_project,
    *_former_paths("project"),
)


def _get(path: str, word: str) -> Namespace:
    """Return the group or project of a present or former path; raise InvalidError for the other."""
    place = get_namespace(path, session=db.session())
    if place.resource_type != word:
        message = f"{place.path} is a {place.resource_type}, not a {word}."
        raise InvalidError(message)
    return place


def _renamed(place: Namespace, segment: str) -> Changes:
    session = db.session()
    if place.project_id is not None:
        return moving.rename_project(place.project_id, segment, session=session, now=now())
    return moving.rename_group(
        place.group_id or 0, segment, reserved=reserved_names(), session=session, now=now()
    )


def _after(place: Namespace, changes: Changes) -> Namespace:
    return replace(place, path=changes["path"][1]) if "path" in changes else place


def _done(place: Namespace, changes: Changes) -> dict[str, Any]:
    after = _after(place, changes)
    if changes:
        record_event(edited(after, changes))
    return {"id": after.id, "path": after.path, "changed": [*changes]}


def _confirmed(place: Namespace, is_confirmed: object) -> dict[str, Any]:
    """Return what a group or project holds; raise InvalidError unless it is to be deleted."""
    found = contents_of(place, session=db.session())
    if is_confirmed:
        contents = {each.plural: each.count for each in found}
        return {"id": place.id, "path": place.path, "contents": contents}
    inside = ", ".join(
        f"{each.count:,} {each.word if each.count == 1 else each.plural}" for each in found
    )
    message = f"{place.path} has {inside or 'nothing in it'}. Add --yes to delete it."
    raise InvalidError(message)
