"""Generates docs/settings.md from the table of settings."""

import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field
from typing import Any

from web.settings.fields import Source, about
from web.settings.sections import sections

_MARKS = {Source.ENVIRONMENT: "", Source.SECRET: " ⚿", Source.LIVE: " ↻"}

_INTRODUCTION = """\
# Settings

Generated from `web/settings/table.py` by `make docs`.

Settings are environment variables; an empty variable counts as unset. With an invalid value the
service does not start, and names the variable.

- ↻ can also be changed while the service is running: `gatebell settings set NAME VALUE`. That value
  is stored in the database, applies to all processes, and takes precedence over the environment.
- ⚿ is a secret: it is never shown, and `NAME_FILE` can name a file that contains it.
"""


def document() -> str:
    """Return the text of docs/settings.md."""
    return _INTRODUCTION + "".join(line + "\n" for line in _rows())


def _rows() -> Iterator[str]:
    for section in sections():
        yield from ("", f"## {section.title}", "")
        yield from ("| variable | default | allowed | meaning |", "|---|---|---|---|")
        for setting in section.settings:
            known = about(setting)
            name = f"`{setting.name.upper()}`" + _MARKS[known.source]
            yield f"| {name} | {_default_of(setting)} | {known.kind.allowed} | {known.doc} |"


def _default_of(setting: Field[Any]) -> str:
    if setting.default is MISSING:
        return about(setting).default_in_words
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    return str(setting.default) if setting.default not in {"", (), None} else "none"


if __name__ == "__main__":
    sys.stdout.write(document())
