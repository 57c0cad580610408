"""The tutorial for contributors: its diffs are parts of a patch that applies and passes its tests.

If a change of the code breaks the patch, make the patch again: run `git apply --reject` with it,
mend what was rejected, run `make docs`, stage all files, and write `git diff --cached -U2` to the
file. Then remove the feature again, and update the diffs of the tutorial.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.mutations.try_breaks import ROOT, copy_files

TUTORIAL = ROOT / "docs" / "contributing" / "first-feature.md"
PATCH = TUTORIAL.with_suffix(".patch")
#: Written by `make docs`, so the tutorial does not show them.
GENERATED = {
    *("docs/command-line.md", "docs/permissions.md", "tests/support/wire/openapi.json"),
}
_FILE = re.compile(r"diff --git a/(\S+) ")
_DIFF = re.compile(r"^```diff (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TESTS = re.compile(r"^\.venv/bin/python -m pytest -q (\S+)$", re.MULTILINE)
_LINT = (("check",), ("format", "--check"))


def _parts() -> dict[str, str]:
    """Return the parts of the patch by the file that they change."""
    text = PATCH.read_text(encoding="utf-8")
    found = re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)[1:]
    return {_FILE.findall(part)[0]: part for part in found}


PARTS = _parts()
DIFFS: list[tuple[str, str]] = _DIFF.findall(TUTORIAL.read_text(encoding="utf-8"))
NEW = [name for name, part in PARTS.items() if "\nnew file mode " in part]
MIGRATION = next(name for name in NEW if name.startswith("migrations/"))
#: In the checkout of a reader, a part of the patch is there already.
in_a_clean_checkout = pytest.mark.skipif(
    any((ROOT / name).exists() for name in NEW), reason="this checkout follows the tutorial"
)


def lines_of(diff: str) -> list[str]:
    """Return the lines of a diff without numbers, and without spaces that editors remove."""
    return ["@@" if line.startswith("@@") else line.rstrip() for line in diff.splitlines()]


def contains(lines: list[str], part: list[str]) -> bool:
    """Return whether a list has the lines of another one, one after the other."""
    size = len(part)
    return any(lines[begin : begin + size] == part for begin in range(len(lines) - size + 1))


def changed(lines: Iterable[str]) -> set[str]:
    """Return the lines that a diff adds or removes."""
    return {line for line in lines if re.match(r"[+-](?!\+\+ |-- )", line)}


@in_a_clean_checkout
def test_the_patch_applies() -> None:
    check = ("git", "apply", "--check", str(PATCH))
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), __doc__


def test_each_diff_in_the_tutorial_is_a_part_of_the_patch() -> None:
    assert [name for name, _ in DIFFS if name not in PARTS] == []
    other = [name for name, diff in DIFFS if not contains(lines_of(PARTS[name]), lines_of(diff))]
    assert other == []


def test_the_tutorial_shows_each_line_that_the_patch_changes() -> None:
    left_out = {}
    for name, part in PARTS.items():
        shown = {line for file, diff in DIFFS if file == name for line in lines_of(diff)}
        left_out[name] = changed(lines_of(part)) - shown
    assert {name for name, lines in left_out.items() if lines} == GENERATED


def number_migration(checkout: Path) -> str:
    """Give the migration of the patch the next number, as `make migration` does.

    Return its path.
    """
    file = checkout / MIGRATION
    own, others = file.name[:4], file.parent.glob("0*.py")
    last = max(each.name[:4] for each in others if each != file)
    text = file.read_text(encoding="utf-8")
    following = text.replace(f'"{own}"', f'"{int(last) + 1:04}"', 1)
    following = following.replace(f'"{int(own) - 1:04}"', f'"{last}"', 1)
    file.unlink()
    renamed = file.with_name(f"{int(last) + 1:04}{file.name[4:]}")
    renamed.write_text(following, encoding="utf-8")
    return renamed.relative_to(checkout).as_posix()


@pytest.mark.long
@in_a_clean_checkout
def test_a_checkout_with_the_patch_passes_the_tests_that_the_tutorial_runs(tmp_path: Path) -> None:
    copy_files(ROOT, tmp_path)
    for command in (("git", "init", "--quiet"), ("git", "apply", str(PATCH))):
        subprocess.run(command, cwd=tmp_path, check=True)
    modules = [name for name in PARTS if name.endswith(".py") and name != MIGRATION]
    modules.append(number_migration(tmp_path))
    unreleased = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert contains(unreleased.splitlines(), [line[1:] for line in _added("CHANGELOG.md")])
    for options in _LINT:
        assert_succeeds(tmp_path, "ruff", *options, *modules)
    named = _TESTS.findall(TUTORIAL.read_text(encoding="utf-8"))
    assert "tests/architecture" in named
    every_endpoint = "tests/http/oauth/test_every_parameter.py::test_every_endpoint_is_in_the_list"
    assert_succeeds(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", *named, every_endpoint)


def assert_succeeds(checkout: Path, *module_and_options: str) -> None:
    """Run a module of Python in a checkout."""
    # By the path of this environment: Postgres, as another user, may not enter the copy.
    command = (sys.executable, "-m", *module_and_options)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-1_000:]


def _added(name: str) -> list[str]:
    return [line for line in lines_of(PARTS[name]) if line.startswith("+") and line[:3] != "+++"]
