"""Commands for settings that can change while the service runs."""

import sys
from collections.abc import Iterator
from typing import Any

import click
from flask.cli import AppGroup

from web.admin.settings import (
    SettingView,
    ValueSource,
    forget_setting,
    section_views,
    settings_now,
    store_setting,
)
from web.api.schemas.releases import ReleaseRehearsal
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.work import work
from web.releases.rehearsal import as_text, rehearse_change
from web.services import now, services
from web.settings.reader import SettingsError, changeable, read_change
from web.settings.stored import stored_settings

instance_settings = AppGroup("settings", help="Manage the settings of the installation.")
_CHANGED = "changed"
_ORIGINS = {
    ValueSource.DEFAULT: "default",
    ValueSource.ENVIRONMENT: "environment",
    ValueSource.CHANGED_HERE: _CHANGED,
}
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@instance_settings.command("set")
@click.argument("name")
@click.argument("value")
@_YES
@one_transaction
def set_setting_command(*, name: str, value: str, yes: bool) -> dict[str, Any]:
    """Set NAME to VALUE for all processes. docs/settings.md lists the names.

    Before RELEASE is changed, the command prints the calls that break. At a terminal, it prompts
    for confirmation.
    """
    read_change(name, value)
    told = _tell_of_release(name, value, is_agreed=yes)
    return {**store_setting(work(), name, value), **told}


@instance_settings.command("reset")
@click.argument("name")
@_YES
@one_transaction
def reset_setting_command(*, name: str, yes: bool) -> dict[str, Any]:
    """Reset NAME to the value of the environment or to its default.

    Before RELEASE is changed, the command prints the calls that break. At a terminal, it prompts
    for confirmation.
    """
    at_start = services().live_settings.environment.release
    told = _tell_of_release(name, at_start, is_agreed=yes)
    return {**forget_setting(work(), name), **told}


@instance_settings.command("list")
@click.option(
    "--changed", is_flag=True, help="Only settings that were changed while the service was running."
)
@one_transaction
def list_settings_command(*, changed: bool) -> dict[str, Any]:
    """List all settings with their values and origins. Secrets are not shown."""
    listed = [_shown(section, view) for section, view in _views()]
    return {"settings": [each for each in listed if not changed or each["origin"] == _CHANGED]}


@instance_settings.command("show")
@click.argument("name")
@one_transaction
def show_setting_command(*, name: str) -> dict[str, Any]:
    """Show the value, the origin and the purpose of the setting NAME."""
    for section, view in _views():
        if view.name == name.lower():
            allowed, about = view.allowed_in_words, view.doc
            return {**_shown(section, view), "allowed": allowed, "about": about}
    raise SettingsError(f"{name} is not a setting. docs/settings.md lists all settings.")


def _views() -> Iterator[tuple[str, SettingView]]:
    stored = stored_settings(session=db.session())
    for section in section_views(services().live_settings.environment, stored):
        yield from ((section.title, view) for view in section.settings)


def _shown(section: str, view: SettingView) -> dict[str, Any]:
    return {
        "name": view.name,
        # For a secret, the output only shows whether it is set.
        "value": view.text or view.words.lower() if view.is_secret else view.text,
        "origin": _ORIGINS[view.source],
        "changeable": view.is_live,
        "section": section,
    }


def _tell_of_release(name: str, release: str, *, is_agreed: bool) -> dict[str, Any]:
    """Print what a new running release breaks, ask for confirmation, and return it.

    Return nothing for other settings. There is no prompt if the user agreed or a script runs.
    """
    if changeable(name).name != "release":
        return {}
    session = db.session()
    found = rehearse_change(release, settings_now(session=session), session=session, now=now())
    # No lock is held while the prompt waits.
    session.rollback()
    if found is None:
        return {}
    click.echo("\n".join(as_text(found)), err=True)
    if not is_agreed and sys.stdin.isatty():
        click.confirm(f"Change the running release to {found.release}?", abort=True, err=True)
    return {"rehearsal": ReleaseRehearsal.of(found).model_dump(mode="json")}
