"""The set-up finds a Python, or says what is missing and which package brings it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service.live import ROOT

TOO_OLD = 'case "$2" in *version_info*) exit 1;; *) exit 0;; esac'
WITHOUT_VENV = 'case "$2" in *ensurepip*) exit 1;; *%d.%d*) echo 3.12;; *) exit 0;; esac'
SHIM_TO_NOWHERE = 'echo "shim: command not found" >&2; exit 127'


def find_python(folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Look for a Python where only these programs are."""
    for name, body in programs.items():
        file = folder / name.replace("_", ".")
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "find-python")],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.long
def test_a_good_python_behind_shims_and_old_ones_is_found(tmp_path: Path) -> None:
    (tmp_path / "python3.11").symlink_to(sys.executable)
    done = find_python(tmp_path, python3=TOO_OLD, python3_13=SHIM_TO_NOWHERE)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).exists()


@pytest.mark.parametrize(
    ("programs", "sentence"),
    [
        ({"python3": WITHOUT_VENV}, "the package python3.12-venv brings what is missing"),
        ({"python3": TOO_OLD}, "needs Python 3.11 or newer, and python3 is older"),
        ({}, "needs Python 3.11 or newer, and found none"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(
    tmp_path: Path, programs: dict[str, str], sentence: str
) -> None:
    done = find_python(tmp_path, **programs)
    assert done.returncode == 1
    assert done.stdout == ""
    assert sentence in done.stderr


def test_make_help_names_every_target_that_people_use() -> None:
    made = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - any make
    assert {"run", "test", "lint", "fmt", "migrate", "docs", "coverage"} <= {
        line.split()[1] for line in made.stdout.splitlines()
    }


def pins_in(name: str) -> dict[str, list[str]]:
    """Return what a file pins, each with the hashes of its files."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("    "):
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
            found[next(reversed(found))].append(line.split()[0])
        elif not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*( ; [^\\]+)? \\", line), line
            found[line.split()[0]] = []
    return found


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_requirement_is_pinned_with_hashes_and_names_no_place_to_get_it(name: str) -> None:
    pins = pins_in(name)
    assert pins
    assert [pin for pin, hashes in pins.items() if not hashes] == []
    assert "--require-hashes -r requirements" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_what_is_tested_is_what_runs() -> None:
    assert pins_in("requirements.txt").items() <= pins_in("requirements-dev.txt").items()


@pytest.mark.parametrize("name", ["requirements.in", "requirements-dev.in"])
def test_what_is_asked_for_is_pinned(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    asked = {re.split(r"[\s\[=<>#]", line)[0] for line in lines if line and line[0] != "#"}
    pinned = {pin.partition("==")[0] for pin in pins_in(name.replace(".in", ".txt"))}
    assert {re.sub(r"[-_.]+", "-", each).lower() for each in asked} <= pinned


@pytest.mark.long
def test_the_list_of_what_it_is_made_of_has_every_pin(tmp_path: Path) -> None:
    listed = tmp_path / "sbom.json"
    words = [
        "requirements",
        "requirements.txt",
        "--output-reproducible",
        "--output-file",
        str(listed),
    ]
    command = [sys.executable, "-m", "cyclonedx_py", *words]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    components = json.loads(listed.read_text(encoding="utf-8"))["components"]
    assert {f"{each['name']}=={each['version']}" for each in components} == set(
        pins_in("requirements.txt")
    )
