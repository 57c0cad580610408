"""Tests that the setup finds a Python, or names the missing package."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.service.live import ROOT
from web import interpreter

TOO_OLD = 'case "$2" in *version_info*) exit 1;; *) exit 0;; esac'
WITHOUT_VENV = 'case "$2" in *ensurepip*) exit 1;; *%d.%d*) echo 3.12;; *) exit 0;; esac'
SHIM_TO_NOWHERE = 'echo "shim: command not found" >&2; exit 127'


#: Programs that answer every question with their name.
_ANSWERS = 'case "$*" in *interpreter.py*) exit {};; *sys.executable*) echo {};; esac'
OPTIMIZED, PLAIN = _ANSWERS.format(0, "optimized"), _ANSWERS.format(1, "plain")


def find_python(
    folder: Path, *later: Path, named: str = "", **programs: str
) -> subprocess.CompletedProcess[str]:
    """Search for a Python among these programs, then among the programs of later folders."""
    folder.mkdir(exist_ok=True)
    for name, body in programs.items():
        file = folder / name.replace("_", ".")
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "find-python")],
        env={"PATH": os.pathsep.join(map(str, (folder, *later))), "PYTHON": named},
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
        ({"python3": WITHOUT_VENV}, "missing package: apt-get install python3.12-venv"),
        ({"python3": TOO_OLD}, "needs Python 3.11 or newer, and python3 is older"),
        ({}, "needs Python 3.11 or newer, and none was found"),
    ],
)
def test_a_missing_package_is_reported_in_a_sentence(
    tmp_path: Path, programs: dict[str, str], sentence: str
) -> None:
    done = find_python(tmp_path, **programs)
    assert done.returncode == 1
    assert done.stdout == ""
    assert sentence in done.stderr


def test_an_optimized_python_is_preferred(tmp_path: Path) -> None:
    later = tmp_path / "later"
    assert find_python(later, python3=OPTIMIZED, python3_12=PLAIN).stdout == "optimized\n"
    done = find_python(tmp_path / "first", later, python3=PLAIN, python3_13=PLAIN)
    assert (done.returncode, done.stdout) == (0, "optimized\n")
    assert f"Using {later}/python3, because {tmp_path}/first/python3 was built" in done.stderr
    assert f"make PYTHON={tmp_path}/first/python3 …" in done.stderr


def test_a_named_or_single_python_is_used_without_optimization(tmp_path: Path) -> None:
    programs = {"python3": OPTIMIZED, "python3_12": PLAIN}
    named = find_python(tmp_path, named=str(tmp_path / "python3.12"), **programs)
    assert (named.returncode, named.stdout) == (0, "plain\n")
    assert "was built without optimization" in named.stderr
    alone = find_python(tmp_path / "alone", python3=PLAIN, python3_12=WITHOUT_VENV)
    assert (alone.returncode, alone.stdout) == (0, "plain\n")
    assert "docs/deployment.md#choose-a-python" in alone.stderr


@pytest.mark.parametrize(
    ("variables", "schemes", "is_so"),
    [
        # Python from python.org, Docker images, Homebrew and Fedora.
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}, (), True),
        ({"PY_CORE_CFLAGS": "-O3 -fprofile-use -fprofile-correction"}, (), True),
        # Python from pyenv with its defaults.
        ({"CONFIG_ARGS": "'--prefix=/root/.pyenv' '--enable-shared'"}, (), False),
        # Python from Debian and Ubuntu.
        ({"CONFIG_ARGS": "'--enable-shared' '--prefix=/usr'"}, ("deb_system",), True),
        ({"CONFIG_ARGS": "'--with-pydebug'", "Py_DEBUG": 1}, ("deb_system",), False),
        ({}, (), False),
    ],
)
def test_optimization_of_a_python_is_detected(
    variables: dict[str, object],
    schemes: tuple[str, ...],
    is_so: bool,  # noqa: FBT001 - a column of the table
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", variables.get)
    monkeypatch.setattr(sysconfig, "get_scheme_names", lambda: ("posix_prefix", *schemes))
    assert interpreter.is_interpreter_optimized() == is_so


def test_the_interpreter_check_runs_without_installed_packages() -> None:
    command = [sys.executable, "-I", str(ROOT / "web" / "interpreter.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{interpreter.describe_interpreter()}\n"
    assert (done.returncode == 0) == interpreter.is_interpreter_optimized()


def test_make_help_lists_every_common_target() -> None:
    made = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - any make
    assert {"run", "test", "lint", "fmt", "migrate", "docs", "coverage"} <= {
        line.split()[1] for line in made.stdout.splitlines()
    }


def pins_in(name: str) -> dict[str, list[str]]:
    """Return the pins of a file, each with the hashes of its files."""
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
def test_every_requirement_is_pinned_with_hashes_and_without_an_index(name: str) -> None:
    pins = pins_in(name)
    assert pins
    assert [pin for pin, hashes in pins.items() if not hashes] == []
    assert "--require-hashes -r requirements" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_development_requirements_include_all_runtime_pins() -> None:
    assert pins_in("requirements.txt").items() <= pins_in("requirements-dev.txt").items()


@pytest.mark.parametrize("name", ["requirements.in", "requirements-dev.in"])
def test_every_requested_package_is_pinned(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    asked = {re.split(r"[\s\[=<>#]", line)[0] for line in lines if line and line[0] != "#"}
    pinned = {pin.partition("==")[0] for pin in pins_in(name.replace(".in", ".txt"))}
    assert {re.sub(r"[-_.]+", "-", each).lower() for each in asked} <= pinned


@pytest.mark.long
def test_the_sbom_lists_every_pin(tmp_path: Path) -> None:
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
