"""Tests of `make bench` and `make bench-neighbors` with minimal amounts of each kind of work."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bench.figures.fixed_rate import REQUEST_MIX
from bench.noisy_neighbors.neighbors import NEIGHBORS
from bench.scale.sqlite_report import find_sqlite_section, replace_section
from bench.workloads import COMPARED_KINDS, FIGURE_KINDS

pytestmark = pytest.mark.one_database("postgres")

ROOT = Path(__file__).resolve().parents[3]
#: The package of wrk and its libraries.
_PACKAGES = ("wrk", "libluajit-5.1-2", "libluajit-5.1-common")
#: Number of seconds; an idle machine needs a minute.
_PATIENCE_SECONDS = 600


@pytest.fixture(scope="module")
def wrk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of wrk: the installed program, or Debian's unpacked package."""
    if found := shutil.which("wrk"):
        yield Path(found).parent
        return
    folder = tmp_path_factory.mktemp("wrk")
    try:
        _run("apt-get", "download", *_PACKAGES, within=folder)
        for package in sorted(folder.glob("*.deb")):
            _run("dpkg-deb", "--extract", str(package), str(folder), within=folder)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("wrk is not installed (apt-get install wrk)")
    [library] = {each.parent for each in folder.rglob("libluajit*.so.2")}
    program = folder / "bin" / "wrk"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{library}" exec "{folder}/usr/bin/wrk" "$@"\n')
    program.chmod(0o755)
    yield program.parent


def _run(*command: str, within: Path) -> None:
    subprocess.run(command, cwd=within, check=True, capture_output=True, timeout=120)


@pytest.mark.long
def test_every_kind_of_work_can_be_measured(wrk: Path) -> None:
    results = ROOT / "bench" / "results"
    before = sorted(results.iterdir()) if results.is_dir() else []
    done = subprocess.run(
        (sys.executable, "-m", "bench.compare", "--once", "--no-peers"),
        cwd=ROOT,
        env={**os.environ, "PATH": f"{wrk}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for work in COMPARED_KINDS:
        part = done.stdout.partition(f"\n{work.label}\n")[2]
        ours = [line for line in part.splitlines()[:5] if line.startswith("  Gatebell, ")]
        assert len(ours) >= 2, (work.label, done.stdout)
    after = sorted(results.iterdir()) if results.is_dir() else []
    assert after == before


@pytest.mark.long
def test_every_figure_can_be_measured(wrk: Path) -> None:
    done = subprocess.run(
        (sys.executable, "-m", "bench.compare", "--figures", "--once"),
        cwd=ROOT,
        env={**os.environ, "PATH": f"{wrk}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=2 * _PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows]
    for work in FIGURE_KINDS:
        # There are rows with TLS and without it; requests of the mix have an additional row.
        found = [row for row in cells if row[0] == work.label]
        assert len(found) == 2 + (work in REQUEST_MIX), (work, done.stdout)
        assert {row[7] for row in found[:2]} == {"0"}, (work, done.stdout)
        assert [row[8] for row in found[2:]] in ([], ["0"]), (work, done.stdout)
    assert "`argon2id$v=19$m=65536,t=3,p=4`" in done.stdout
    for database in ("SQLite, empty", "Postgres, filled"):
        assert any(row[0] == database for row in cells), done.stdout
    [account] = [after for row, after in pairwise(cells) if row[:2] == ["acknowledged", "stored"]]
    assert account[0] == account[1] != "0", done.stdout
    assert account[2:4] == ["0", "0"], done.stdout
    assert cells[-1][0] == "both web processes"


@pytest.mark.long
@pytest.mark.parametrize("left_out", ["--no-sqlite", "--no-postgres"])
def test_every_neighbor_can_be_measured(wrk: Path, left_out: str) -> None:
    document = ROOT / "docs" / "evidence" / "noisy-neighbors.md"
    before = document.read_bytes()
    done = subprocess.run(
        (sys.executable, "-m", "bench.noisy_neighbors.benchmark", "--once", left_out),
        cwd=ROOT,
        env={**os.environ, "PATH": f"{wrk}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for words, _ in NEIGHBORS.values():
        # There is a row for each of two requests.
        assert done.stdout.count(f"| {words} |") == 2, (words, done.stdout)
    assert done.stdout.count("## Frozen database") == 1
    assert document.read_bytes() == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("database", "before"), [("--database=sqlite", "HEAD"), ("--database=postgres", ".")]
)
def test_a_change_is_measured_in_pairs(database: str, before: str) -> None:
    """Measure a commit, which is unpacked and compiled, and a folder."""
    amounts = ("--only", "token-info,code,intake", "--pairs", "2", "--requests", "3")
    done = subprocess.run(
        (sys.executable, "-m", "bench.costs.pairs", "--before", before, database, *amounts),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines()[-3:]]
    assert [row[0].strip() for row in rows] == ["token-info", "code", "intake"]
    for row in rows:
        web, postgres = (float(row[1]), float(row[2])), float(row[4])
        assert min(web) > 0, done.stdout
        assert (postgres > 0) == database.endswith("postgres"), done.stdout


def test_a_new_measurement_of_postgres_keeps_the_section_on_sqlite() -> None:
    written = replace_section("# Scale\n\nOld figures of Postgres.\n", "\n## SQLite\n\nFigures.\n")
    anew = replace_section("# Scale\n\nNew figures.\n\n", find_sqlite_section(written))
    assert anew == "# Scale\n\nNew figures.\n\n## SQLite\n\nFigures.\n"
    assert replace_section(anew, "\n## SQLite\n\nOthers.\n").count("## SQLite") == 1
