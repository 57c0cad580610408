"""Tests that the program, API, metrics and documents show the running version."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import requests

from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

ROOT = Path(__file__).resolve().parents[3]
COMMIT = "1f2e3d4c5b6a79880123456789abcdef01234567"
GIT = ("git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT))


def declared() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def checked_out() -> str:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    done = subprocess.run((*GIT, "rev-parse", "HEAD"), capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.long
def test_the_program_the_api_the_metrics_and_the_page_show_the_version(
    gatebell: LiveGatebell,
) -> None:
    version, commit = declared(), checked_out()
    assert gatebell.run_program("--version").stdout == f"Gatebell {version} ({commit[:12]})\n"
    assert json.loads(gatebell.run_program("version").stdout) == {
        "version": version,
        "commit": commit,
    }
    token = make_token(gatebell, get_shared_administrator(gatebell), scopes="read_api").clear
    for name in ("version", "metadata"):
        url = f"{gatebell.url}/api/v4/{name}"
        shown = requests.get(url, headers={"PRIVATE-TOKEN": token}, timeout=30).json()
        assert (shown["gatebell_version"], shown["gatebell_commit"]) == (version, commit)
        assert (shown["version"], shown["revision"]) == ("18.0.0", "gatebell")
    told = requests.get(f"{gatebell.url}/metrics", timeout=30).text
    [line] = [each for each in told.splitlines() if each.startswith("gatebell_build_info{")]
    assert f'version="{version}"' in line
    assert f'commit="{commit}"' in line
    page = signed_in(gatebell, get_shared_administrator(gatebell)).get(f"{gatebell.url}/admin")
    assert f"{version} ({commit[:12]})" in page.text
    found = json.loads(gatebell.run_program("doctor").stdout)
    assert f"Gatebell {version} ({commit[:12]})" in json.dumps(found)


@pytest.mark.parametrize(
    ("noted", "commit"), [(f"{COMMIT}\n", COMMIT), ("\n", None), ("$Format:%H$\n", None)]
)
def test_an_image_or_an_archive_records_its_commit(
    tmp_path: Path, noted: str, commit: str | None
) -> None:
    for name in ("web", "domain"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "COMMIT").write_text(noted)
    asked = "from web.version import get_running_build; print(get_running_build().revision or None)"
    done = subprocess.run(
        (sys.executable, "-c", asked), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(commit)


def test_git_writes_the_commit_into_an_archive(tmp_path: Path) -> None:
    commit = checked_out()
    archive = tmp_path / "gatebell.tar"
    written = (*GIT, "archive", "--output", str(archive), "HEAD", "COMMIT", ".gitattributes")
    subprocess.run(written, check=True)
    # The archive is not unpacked, because Python 3.11.2 of Debian 12 has no extraction filters.
    with tarfile.open(archive) as opened:
        noted = opened.extractfile("COMMIT")
        assert noted is not None
        assert noted.read().decode().strip() == commit


def test_the_changelog_has_a_heading_for_the_version() -> None:
    headings = re.findall(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", _changelog(), re.MULTILINE)
    version = declared()
    if version.endswith(".dev0"):
        assert headings[0] == ("Unreleased", "")
        newest = next(name for name, moment in headings if moment)
        assert _numbers(version.removesuffix(".dev0")) > _numbers(newest)
    else:
        name, moment = headings[0] if headings[0][0] != "Unreleased" else headings[1]
        assert (name, bool(moment)) == (version, True)


def _changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
