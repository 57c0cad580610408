"""`make migration`: writes down what the models want and the database does not have."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrations import new
from tests.support.service.live import ROOT

FOLDERS = ("domain", "migrations", "models", "web")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The code, where it can be changed."""
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def run(checkout: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "migrations.new", *words],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "INSTANCE_PATH": str(checkout / "instance")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_new_column_becomes_the_next_migration(checkout: Path) -> None:
    models = checkout / "models" / "programs.py"
    column = "    seen_at: Mapped[datetime]\n"
    with_site = models.read_text().replace(column, f"{column}    site: Mapped[str | None]\n", 1)
    models.write_text(with_site)
    before = sorted((checkout / "migrations" / "versions").glob("*.py"))
    done = run(checkout, "name", "the site")
    assert done.returncode == 0, done.stderr
    (made,) = set((checkout / "migrations" / "versions").glob("*.py")) - set(before)
    number = int(before[-1].name.split("_")[0]) + 1
    assert made.name == f"{number:04}_name_the_site.py"
    text = made.read_text()
    assert f"revision = '{number:04}'" in text
    assert text.count("add_column('hosts', sa.Column('site'") == 1, text
    assert text.count("op.") == 2, text


def test_it_asks_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["migrations.new"])
    with pytest.raises(SystemExit, match='make migration NAME="'):
        new.main()
