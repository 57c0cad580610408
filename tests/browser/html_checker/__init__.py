"""Checks HTML with npm's html-validate."""

from collections.abc import Iterator
from pathlib import Path

from tests.stories.javascript import install, run_script

_FOLDER = Path(__file__).parent


def html_problems(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the problems of the files of a folder, each with the name of its file."""
    install(_FOLDER)
    found = run_script(_FOLDER, {"folder": str(folder)}, script="check.mjs")
    for each in found["problems"]:
        yield each["name"], f"{each['ruleId']}, {each['selector']}: {each['message']}"
