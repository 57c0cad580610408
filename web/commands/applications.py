"""Commands for OAuth clients."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.users import get_user
from domain.oauth.applications import actions
from domain.oauth.clients.application_lists import (
    list_instance_wide_applications,
    list_own_applications,
)
from web.commands.action_commands import build_command
from web.commands.execution import run_in_transaction
from web.extensions import db
from web.services import get_current_time

applications = AppGroup("applications", help="Manage OAuth applications.")
applications.add_command(build_command(actions.register_application, user_option="--owner"))
for each in (
    actions.show_application,
    actions.change_application,
    actions.list_application_users,
    actions.rotate_secret,
    actions.remove_application,
):
    applications.add_command(build_command(each))


@applications.command("list")
@click.option("--owner", help="Owner. Without it, the instance-wide applications are listed.")
@run_in_transaction
def list_applications_command(*, owner: str | None) -> dict[str, Any]:
    """List applications, newest first."""
    session = db.session()
    if owner is None:
        found = list_instance_wide_applications(session=session, now=get_current_time())
    else:
        found = list_own_applications(
            get_user(owner, session=session).id, session=session, now=get_current_time()
        )
    listed = [each.model_dump(mode="json") for each in found]
    return {"applications": listed, "total": len(listed)}
