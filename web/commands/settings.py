"""Commands about settings that can change while the service runs."""

from typing import Any

import click
from flask.cli import AppGroup

from web.admin.setting_changes import forget_setting, store_setting, stored_settings
from web.commands.transaction import one_transaction
from web.extensions import db
from web.services import now

instance_settings = AppGroup("settings", help="Settings that can change while the service runs.")


@instance_settings.command("set")
@click.argument("name")
@click.argument("value")
@one_transaction
def set_setting_command(*, name: str, value: str) -> dict[str, Any]:
    """Set NAME to VALUE for all processes. docs/settings.md lists the names."""
    return store_setting(name, value, session=db.session(), now=now())


@instance_settings.command("reset")
@click.argument("name")
@one_transaction
def reset_setting_command(*, name: str) -> dict[str, Any]:
    """Reset NAME to the value of the environment or to its default."""
    return forget_setting(name, session=db.session())


@instance_settings.command("list")
@one_transaction
def list_settings_command() -> dict[str, Any]:
    """List the settings that were changed at run time."""
    return {"changed": stored_settings(session=db.session())}
