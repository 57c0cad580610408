"""Sections of settings, in the documentation and on the administrators' page."""

from collections.abc import Iterator
from dataclasses import Field, dataclass, fields
from typing import Any

from web.settings.reader import Settings

#: The first setting of each section; a section may be continued later.
_FIRST = {
    "host": "Address",
    "instance_path": "Storage",
    "repositories_path": "Git",
    "secret_key": "Keys",
    "web_concurrency": "Processes",
    "log_level": "Logs and metrics",
    "heartbeat_rate_limit": "Heartbeats",
    "self_monitor_project": "Self-monitor",
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


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of settings."""

    title: str
    settings: tuple[Field[Any], ...]

    @property
    def key(self) -> str:
        """Return its name in URLs: `applications-and-tokens`."""
        return self.title.lower().replace(" ", "-")


def sections() -> tuple[Section, ...]:
    """Return all settings in their sections, in the order of `web/settings/table.py`."""
    return tuple(
        Section(title=title, settings=tuple(members)) for title, members in _grouped().items()
    )


def _grouped() -> dict[str, list[Field[Any]]]:
    found: dict[str, list[Field[Any]]] = {}
    for title, setting in _with_titles():
        found.setdefault(title, []).append(setting)
    return found


def _with_titles() -> Iterator[tuple[str, Field[Any]]]:
    title = ""
    for setting in fields(Settings):
        title = _FIRST.get(setting.name, title)
        yield title, setting
