"""Checks HTML with npm's html-validate."""

from collections.abc import Iterator
from pathlib import Path

from tests.stories.javascript import install, run_script

_FOLDER = Path(__file__).parent


def html_problems(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the files of a folder: the name of a file, and what and where."""
    install(_FOLDER)
    found = run_script(_FOLDER, {"folder": str(folder)}, script="check.mjs")
    for each in found["problems"]:
        yield each["name"], f"{each['ruleId']}, {each['selector']}: {each['message']}"
