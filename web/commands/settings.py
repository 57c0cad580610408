"""Commands for settings that can change while the service runs."""

import sys
from collections.abc import Iterator
from typing import Any

import click
from flask.cli import AppGroup

from web.admin.settings import (
    SettingView,
    ValueSource,
    get_settings_in_transaction,
    list_section_views,
    reset_setting,
    store_setting_text,
)
from web.api.schemas.releases import ReleaseRehearsal
from web.commands.execution import run_in_transaction
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.releases.rehearsal import format_rehearsal, rehearse_change
from web.services import get_current_time, get_services
from web.settings.environment import SettingsError, get_changeable_setting, parse_setting_value
from web.settings.stored_settings import read_stored_settings

instance_settings = AppGroup("settings", help="Manage the settings of the installation.")
_CHANGED_ORIGIN = "changed"
_ORIGINS = {
    ValueSource.DEFAULT: "default",
    ValueSource.ENVIRONMENT: "environment",
    ValueSource.CHANGED_HERE: _CHANGED_ORIGIN,
}
_YES_OPTION = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@instance_settings.command("set")
@click.argument("name")
@click.argument("value")
@_YES_OPTION
@run_in_transaction
def set_setting_command(*, name: str, value: str, yes: bool) -> dict[str, Any]:
    """Set NAME to VALUE for all processes. docs/settings.md lists the names.

    Before RELEASE is changed, the command prints the calls that break. At a terminal, it prompts
    for confirmation.
    """
    parse_setting_value(name, value)
    told = _confirm_release_change(name, value, is_agreed=yes)
    return {**store_setting_text(get_unit_of_work(), name, value), **told}


@instance_settings.command("reset")
@click.argument("name")
@_YES_OPTION
@run_in_transaction
def reset_setting_command(*, name: str, yes: bool) -> dict[str, Any]:
    """Reset NAME to the value from the environment or to its default.

    Before RELEASE is changed, the command prints the calls that break. At a terminal, it prompts
    for confirmation.
    """
    at_start = get_services().live_settings.environment_settings.release
    told = _confirm_release_change(name, at_start, is_agreed=yes)
    return {**reset_setting(get_unit_of_work(), name), **told}


@instance_settings.command("list")
@click.option(
    "--changed", is_flag=True, help="Only settings that were changed while the service was running."
)
@run_in_transaction
def list_settings_command(*, changed: bool) -> dict[str, Any]:
    """List all settings with their values and origins. Secrets are not shown."""
    listed = [_format_setting(section, view) for section, view in _list_setting_views()]
    return {
        "settings": [each for each in listed if not changed or each["origin"] == _CHANGED_ORIGIN]
    }


@instance_settings.command("show")
@click.argument("name")
@run_in_transaction
def show_setting_command(*, name: str) -> dict[str, Any]:
    """Show the value, the origin and the purpose of the setting NAME."""
    for section, view in _list_setting_views():
        if view.name == name.lower():
            allowed, about = view.allowed_values_text, view.doc
            return {**_format_setting(section, view), "allowed": allowed, "about": about}
    raise SettingsError(f"{name} is not a setting. docs/settings.md lists all settings.")


def _list_setting_views() -> Iterator[tuple[str, SettingView]]:
    stored = read_stored_settings(session=db.session())
    for section in list_section_views(get_services().live_settings.environment_settings, stored):
        yield from ((section.title, view) for view in section.settings)


def _format_setting(section: str, view: SettingView) -> dict[str, Any]:
    return {
        "name": view.environment_variable,
        # For a secret, the output shows only whether it is set.
        "value": view.text or view.words.lower() if view.is_secret else view.text,
        "origin": _ORIGINS[view.source],
        "changeable": view.is_live,
        "section": section,
    }


def _confirm_release_change(name: str, release: str, *, is_agreed: bool) -> dict[str, Any]:
    """Print the effects of a new running release and prompt for confirmation.

    Return the rehearsal of the change, or an empty dictionary for other settings. The prompt is
    skipped if the user already agreed or standard input is not a terminal.
    """
    if get_changeable_setting(name).name != "release":
        return {}
    session = db.session()
    found = rehearse_change(
        release,
        get_settings_in_transaction(session=session),
        session=session,
        now=get_current_time(),
    )
    # Hold no lock while the prompt waits.
    session.rollback()
    if found is None:
        return {}
    click.echo("\n".join(format_rehearsal(found)), err=True)
    if not is_agreed and sys.stdin.isatty():
        click.confirm(f"Change the running release to {found.release}?", abort=True, err=True)
    return {"rehearsal": ReleaseRehearsal.from_rehearsal(found).model_dump(mode="json")}
