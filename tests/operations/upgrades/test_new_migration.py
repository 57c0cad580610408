"""Tests of `make migration`, which writes a migration from the models."""

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
    """Copy the code, so that the test can change it."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
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


@pytest.mark.long
def test_a_new_column_becomes_the_next_migration(checkout: Path) -> None:
    models = checkout / "models" / "instance.py"
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


@pytest.mark.long
def test_a_table_that_is_not_imported_causes_a_warning(checkout: Path) -> None:
    table = (
        "from models.base import Base, BigId\n"
        "from datetime import datetime\n"
        "from sqlalchemy.orm import Mapped, mapped_column\n\n\n"
        "class Bell(Base):\n"
        '    __tablename__ = "bells"\n\n'
        "    id: Mapped[int] = mapped_column(BigId, primary_key=True)\n"
        "    cast_at: Mapped[datetime]\n"
    )
    (checkout / "models" / "bells.py").write_text(table)
    done = run(checkout, "keep", "bells")
    assert "everything that models/__init__.py imports" in done.stderr
    (made,) = (checkout / "migrations" / "versions").glob("*_keep_bells.py")
    made.unlink()
    models = checkout / "models" / "__init__.py"
    models.write_text(f"{models.read_text()}\nfrom models.bells import Bell  # noqa\n")
    done = run(checkout, "keep", "bells")
    assert (done.returncode, "It is empty" in done.stderr) == (0, False), done.stderr
    text = made.read_text()
    assert "from models.base import UTCDateTime" in text
    assert "sa.Column('cast_at', UTCDateTime(), nullable=False)" in text


def test_a_name_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["migrations.new"])
    with pytest.raises(SystemExit, match='make migration NAME="'):
        new.main()
