"""Commands for the custom member roles of the instance."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.access.abilities import Ability
from domain.access.roles import role_named
from domain.audit.events import EventKind
from domain.projects import member_roles as domain
from domain.projects.changes import member_role_event
from domain.projects.member_roles import MemberRoleDetails, MemberRoleView
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now

member_roles = AppGroup("member-roles", help="Custom member roles.")


@member_roles.command("list")
@one_transaction
def list_command() -> dict[str, Any]:
    """List the custom roles of the instance."""
    found = domain.list_member_roles(session=db.session())
    return {"member_roles": [_shown(each) for each in found]}


@member_roles.command("create")
@click.argument("name")
@click.argument("base")
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    required=True,
    type=click.Choice([each.value for each in Ability]),
    help="Permission to add; can be repeated.",
)
@click.option("--description", default="", help="What it is for.")
@one_transaction
def create_command(
    *, name: str, base: str, permissions: tuple[str, ...], description: str
) -> dict[str, Any]:
    """Create the role NAME, which adds permissions to the role BASE: Guest … Maintainer."""
    details = MemberRoleDetails(
        name=name,
        description=description,
        base=role_named(base),
        abilities=frozenset(Ability(each) for each in permissions),
    )
    made = domain.create_member_role(details, session=db.session(), now=now())
    record_event(member_role_event(EventKind.MEMBER_ROLE_CREATED, made))
    return _shown(made)


@member_roles.command("delete")
@click.argument("role_id", metavar="MEMBER-ROLE-ID", type=click.IntRange(min=1))
@one_transaction
def delete_command(*, role_id: int) -> dict[str, Any]:
    """Delete a role that no member has."""
    removed = domain.delete_member_role(role_id, session=db.session())
    record_event(member_role_event(EventKind.MEMBER_ROLE_REMOVED, removed))
    return _shown(removed)


def _shown(role: MemberRoleView) -> dict[str, Any]:
    return {
        "id": role.id,
        "name": role.name,
        "base": role.base.label,
        "permissions": sorted(role.abilities),
    }
