"""Configuration snippets for senders, with the URL and the key filled in.

The snippets are declared in `snippets.toml`, with placeholders such as `@URL@`.
"""

import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

_DECLARATIONS = Path(__file__).with_name("snippets.toml")


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A configuration snippet to copy.

    The title consists of the program's name and, after a colon, the place to paste the snippet.
    """

    title: str
    language: str
    text: str

    @property
    def program(self) -> str:
        """Name of the program that the snippet is for."""
        return self.title.partition(":")[0]


def fill_snippets(declarations: Path, group: str, **values: str) -> tuple[Snippet, ...]:
    """Return the snippets of a group in a TOML file, with the `@NAME@` placeholders replaced."""
    return tuple(
        Snippet(
            title=each["title"],
            language=each["language"],
            text=re.sub("@([A-Z_]+)@", lambda name: values[name[1]], each["text"]),
        )
        for each in _read_declarations(declarations)[group]
    )


@cache
def _read_declarations(declarations: Path) -> dict[str, Any]:
    return tomllib.loads(declarations.read_text(encoding="utf-8"))


def build_general_snippets(url: str, key: str, body: str) -> tuple[Snippet, ...]:
    """Return a curl command and a Python script that post a JSON body."""
    # JSON never contains three quotes in a row, so it can be inserted into a raw string unchanged.
    quoted = {"SHELL_URL": shlex.quote(url), "SHELL_BODY": shlex.quote(body)}
    return fill_snippets(_DECLARATIONS, "general", URL=url, KEY=key, BODY=body, **quoted)


def build_http_snippets(url: str, key: str, base_url: str) -> tuple[Snippet, ...]:
    """Return the snippets for tools that send JSON to an HTTP endpoint, sorted by name."""
    scheme, _, rest = url.partition("://")
    # Apprise turns options with a plus sign into headers. Options with a colon rename or add
    # members of the body.
    apprise = {
        "APPRISE_URL": f"{'jsons' if scheme == 'https' else 'json'}://{rest}",
        "QUOTED_KEY": quote(key, safe=""),
    }
    return fill_snippets(_DECLARATIONS, "http", URL=url, KEY=key, BASE_URL=base_url, **apprise)


def build_prometheus_snippets(url: str, key: str) -> tuple[Snippet, ...]:
    """Return the snippets for Alertmanager, its operator and Grafana."""
    return fill_snippets(_DECLARATIONS, "prometheus", URL=url, KEY=key)
