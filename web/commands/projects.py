"""Commands for groups, projects and their members."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.access.roles import role_named
from domain.accounts.users import get_user
from domain.projects import creation
from domain.projects.access import VISIBILITIES
from domain.projects.changes import changed, created, given, joined, left
from domain.projects.member_roles import get_member_role
from domain.projects.members import (
    OPERATOR,
    add_member,
    change_role,
    find_member,
    get_namespace,
    give_member_role,
    remove_member,
)
from web.commands.place_lists import GROUP_LISTS, MEMBER_LISTS, PROJECT_LISTS
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


members = AppGroup("members", help="Members of groups and projects.")

for _holder, _commands in (
    (groups, (*GROUP_LISTS, *GROUP_COMMANDS)),
    (projects, (*PROJECT_LISTS, *PROJECT_COMMANDS)),
    (members, MEMBER_LISTS),
):
    for _command in _commands:
        _holder.add_command(_command)


@members.command("add")
@click.argument("namespace", metavar="PROJECT-OR-GROUP")
@click.argument("user")
@click.argument("role")
@one_transaction
def add_member_command(*, namespace: str, user: str, role: str) -> dict[str, Any]:
    """Add USER as a member with ROLE: Guest, Planner … Maintainer or Owner."""
    wanted = role_named(role)
    found = get_namespace(namespace, session=db.session())
    member = add_member(found, user, wanted, by=OPERATOR, session=db.session(), now=now())
    record_event(joined(found, member, wanted))
    return {"place": found.path, "username": member.username, "role": wanted.label}


@members.command("change")
@click.argument("namespace", metavar="PROJECT-OR-GROUP")
@click.argument("user")
@click.argument("role")
@one_transaction
def change_member_command(*, namespace: str, user: str, role: str) -> dict[str, Any]:
    """Change the role of the member USER to ROLE."""
    session, wanted = db.session(), role_named(role)
    found = get_namespace(namespace, session=session)
    number = find_member(found, user, session=session)
    change = change_role(found, number, wanted, by=OPERATOR, session=session)
    record_event(changed(found, change))
    answer = {"place": found.path, "username": change.user.username}
    return {**answer, "role": wanted.label, "before": change.before.label}


@members.command("give-member-role")
@click.argument("namespace", metavar="PROJECT-OR-GROUP")
@click.argument("user")
@click.argument("role_id", metavar="MEMBER-ROLE-ID", type=click.IntRange(min=0))
@one_transaction
def give_member_role_command(*, namespace: str, user: str, role_id: int) -> dict[str, Any]:
    """Give the member USER a custom role by its id; 0 removes it."""
    session = db.session()
    custom = get_member_role(role_id, session=session) if role_id else None
    found = get_namespace(namespace, session=session)
    number = find_member(found, user, session=session)
    member = give_member_role(found, number, custom, by=OPERATOR, session=session)
    record_event(given(found, member, custom))
    name = custom.name if custom else None
    return {"place": found.path, "username": member.username, "member_role": name}


@members.command("remove")
@click.argument("namespace", metavar="PROJECT-OR-GROUP")
@click.argument("user")
@one_transaction
def remove_member_command(*, namespace: str, user: str) -> dict[str, Any]:
    """Remove the member USER. Inherited roles are kept."""
    session = db.session()
    found = get_namespace(namespace, session=session)
    number = find_member(found, user, session=session)
    member = remove_member(found, number, by=OPERATOR, session=session)
    record_event(left(found, member))
    return {"place": found.path, "username": member.username}
