"""Commands for custom member roles of the instance."""

from typing import Any

import click

from domain.access.roles import Ability
from domain.core.types.validation import validate_body
from domain.projects import member_roles as actions
from domain.projects.member_types import NewMemberRole
from web.commands.action_commands import build_command_group
from web.commands.execution import run_in_transaction
from web.http.unit_of_work import get_unit_of_work

member_roles = build_command_group("member-roles", actions.__name__, "Manage custom member roles.")


@member_roles.command("create")
@click.argument("name")
@click.argument("base")
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    required=True,
    type=click.Choice([each.value for each in Ability]),
    help="Permission to add. Can be repeated.",
)
@click.option("--description", default="", help="Purpose of the role.")
@run_in_transaction
def create_command(
    *, name: str, base: str, permissions: tuple[str, ...], description: str
) -> dict[str, Any]:
    """Create the role NAME, which adds permissions to the role BASE (Guest to Maintainer)."""
    given = {"name": name, "description": description, "base_access_level": base}
    new = validate_body(NewMemberRole, {**given, **dict.fromkeys(permissions, True)})
    return actions.create_member_role(get_unit_of_work(), new).model_dump(mode="json")
