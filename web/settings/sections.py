"""Sections of settings for the administrators' page and docs/settings.md."""

import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from web.settings.environment import Settings
from web.settings.fields import SettingSource, get_setting_metadata

#: Titles of sections, by the first setting of each section. A title can occur several times.
_SECTION_TITLES = {
    "host": "Address",
    "instance_path": "Storage",
    "repositories_path": "Git",
    "secret_key": "Keys",
    "profile": "Processes",
    "log_level": "Logs and metrics",
    "heartbeat_rate_limit": "Heartbeats",
    "session_lifetime_seconds": "Signing in",
    "access_token_lifetime_seconds": "Applications and tokens",
    "alert_body_limit_bytes": "Alerts",
    "api_rate_limit": "Rate limits",
    "generic_alert_fingerprinting": "Alerts",
    "registry_url": "Container registry",
    "mail_url": "Mail",
    "audit_event_keep_days": "Interfaces and records",
    "form_body_limit_bytes": "Interfaces and records",
    "appearance_title": "Appearance",
}
_SOURCE_SYMBOLS = {
    SettingSource.ENVIRONMENT: "",
    SettingSource.SECRET: " (secret)",
    SettingSource.LIVE: " ↻",
}
_INTRODUCTION = """\
# Settings

Settings are environment variables. An empty variable counts as unset, except that an empty rate
limit means no limit. If a value is invalid, the service does not start, and prints the name of the
variable.

Some variables have a mark after their name:

- **↻**: the setting can also be changed while the service is running, for example with
  `gatebell settings set NAME VALUE`. That value is stored in the database, applies to all
  processes, and takes precedence over the environment.
- **(secret)**: the value is never shown.

`NAME_FILE` can name a file that contains the value of `NAME`, unless `NAME` is a path itself. Only
one of the two can be set, and the file must not be empty.

Variables that look like settings but are not settings are ignored. They are reported in the log at
the start, by `gatebell doctor`, on the administration page, and in the metric
`gatebell_configuration_warnings`.
"""
_ORIGIN = """
Generated from `web/settings/definitions.py` and `host_definitions.py` by `make docs`.
"""


@dataclass(frozen=True, kw_only=True)
class SettingsSection:
    """Group of related settings under one title."""

    title: str
    settings: tuple[Field[Any], ...]

    @property
    def key(self) -> str:
        """Name of the section in URLs, such as `applications-and-tokens`."""
        return self.title.lower().replace(" ", "-")


def list_sections() -> tuple[SettingsSection, ...]:
    """Return all settings by section, in the order of their definitions."""
    return tuple(
        SettingsSection(title=title, settings=tuple(members))
        for title, members in _group_settings_by_title().items()
    )


def _group_settings_by_title() -> dict[str, list[Field[Any]]]:
    found: dict[str, list[Field[Any]]] = {}
    for title, setting in _list_settings_with_titles():
        found.setdefault(title, []).append(setting)
    return found


def _list_settings_with_titles() -> Iterator[tuple[str, Field[Any]]]:
    title = ""
    for setting in fields(Settings):
        title = _SECTION_TITLES.get(setting.name, title)
        yield title, setting


def build_settings_reference() -> str:
    """Return the text of docs/settings.md."""
    return _INTRODUCTION + "".join(line + "\n" for line in _format_rows()) + _ORIGIN


def _format_rows() -> Iterator[str]:
    for section in list_sections():
        yield from ("", f"## {section.title}", "")
        yield from ("| variable | default | allowed | meaning |", "|---|---|---|---|")
        for setting in section.settings:
            known = get_setting_metadata(setting)
            name = f"`{setting.name.upper()}`" + _SOURCE_SYMBOLS[known.source]
            yield f"| {name} | {_format_default(setting)} | {known.kind.allowed} | {known.doc} |"


def _format_default(setting: Field[Any]) -> str:
    if setting.default is MISSING:
        return get_setting_metadata(setting).default_in_words
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    return str(setting.default) if setting.default not in {"", (), None} else "none"


if __name__ == "__main__":
    sys.stdout.write(build_settings_reference())
