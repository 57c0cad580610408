"""Commands for groups and projects."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.users import get_user
from domain.projects import creation
from domain.projects.access import VISIBILITIES
from domain.projects.changes import created
from web.commands.place_lists import GROUP_LISTS, PROJECT_LISTS
from web.commands.places import GROUP_COMMANDS, PROJECT_COMMANDS
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.http.routes import reserved_names
from web.services import now

groups = AppGroup("groups", help="Groups of projects.")


@groups.command("create")
@click.argument("path")
@click.option("--owner", help="User who becomes the owner.")
@one_transaction
def create_group_command(*, path: str, owner: str | None) -> dict[str, Any]:
    """Create the group PATH. For a subgroup such as `acme/shops`, `acme` must exist."""
    session = db.session()
    group = creation.create_group(path, reserved=reserved_names(), session=session, now=now())
    if owner:
        user = get_user(owner, session=session)
        creation.make_owner(group, user.id, session=session, now=now())
    record_event(created(group))
    return {"id": group.group_id, "path": group.path}


projects = AppGroup("projects", help="Projects.")


@projects.command("create")
@click.argument("path", metavar="GROUP/NAME")
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    default="private",
    show_default=True,
    help="Visibility: members, signed-in users, or everyone.",
)
@click.option("--owner", help="User who becomes the owner.")
@one_transaction
def create_project_command(*, path: str, visibility: str, owner: str | None) -> dict[str, Any]:
    """Create the project GROUP/NAME. The group must exist."""
    session = db.session()
    project = creation.create_project(
        path, visibility=visibility, reserved=reserved_names(), session=session, now=now()
    )
    if owner:
        user = get_user(owner, session=session)
        creation.make_owner(project, user.id, session=session, now=now())
    record_event(created(project))
    return {"id": project.project_id, "path": project.path, "visibility": visibility}


for _holder, _commands in (
    (groups, (*GROUP_LISTS, *GROUP_COMMANDS)),
    (projects, (*PROJECT_LISTS, *PROJECT_COMMANDS)),
):
    for _command in _commands:
        _holder.add_command(_command)
