"""Writes docs/settings.md from the settings themselves."""

import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from web.setting_fields import Source, about
from web.settings import Settings

#: The first setting of each section of the documentation.
_SECTIONS = {
    "host": "Address",
    "instance_path": "Storage",
    "secret_key": "Keys",
    "web_concurrency": "Processes",
    "log_level": "Logs and metrics",
    "session_lifetime_seconds": "Signing in",
    "access_token_lifetime_seconds": "Applications and tokens",
    "alert_body_limit_bytes": "Alerts",
    "form_body_limit_bytes": "Interfaces",
}

_MARKS = {Source.ENVIRONMENT: "", Source.SECRET: " ⚿", Source.LIVE: " ↻"}

_INTRODUCTION = """\
# Settings

Generated from `web/settings.py` by `make docs`.

A setting is an environment variable; an empty one counts as unset. A wrong value stops the start
with a sentence that names it.

- ↻ can also be changed while the service runs: `flask settings set NAME VALUE`. That value is kept
  in the database, counts for every process and wins over the environment.
- ⚿ is a secret: it is never shown, and `NAME_FILE` may name a file that holds it.
"""


def document() -> str:
    """Return the text of docs/settings.md."""
    return _INTRODUCTION + "".join(line + "\n" for line in _rows())


def _rows() -> Iterator[str]:
    for setting in fields(Settings):
        if setting.name in _SECTIONS:
            yield from ("", f"## {_SECTIONS[setting.name]}", "")
            yield from ("| variable | default | allowed | meaning |", "|---|---|---|---|")
        known = about(setting)
        name = f"`{setting.name.upper()}`" + _MARKS[known.source]
        yield f"| {name} | {_default_of(setting)} | {known.kind.allowed} | {known.doc} |"


def _default_of(setting: Field[Any]) -> str:
    if setting.default is MISSING:
        return about(setting).default_in_words
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    return str(setting.default) if setting.default not in {"", ()} else "none"


if __name__ == "__main__":
    sys.stdout.write(document())
