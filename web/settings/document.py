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

A setting is an environment variable; an empty one counts as unset. A wrong value stops the start
with a sentence that names it.

- ↻ can also be changed while the service runs: `gatebell settings set NAME VALUE`. That value is
  kept in the database, counts for every process and wins over the environment.
- ⚿ is a secret: it is never shown, and `NAME_FILE` may name a file that holds it.
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
