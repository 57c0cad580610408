"""Tests the documentation site that `make site` builds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from blueprints.help.documents import load_sections
from tests.support.service.live import ROOT

_SECONDS = 300


@pytest.mark.long
def test_the_site_builds_without_warnings_in_the_order_of_the_index(tmp_path: Path) -> None:
    options = (
        "--quiet",
        "--fail-on-warning",
        "--keep-going",
        "--doctree-dir",
        str(tmp_path / "trees"),
    )
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "docs", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first = (tmp_path / "site" / "README.html").read_text(encoding="utf-8")
    linked = re.findall(
        r'<li class="toctree-l1[^"]*"><a class="reference internal" href="(.*?)\.html"', first
    )
    assert linked == [topic.name for section in load_sections() for topic in section.topics]
    guide = (tmp_path / "site" / "guides" / "web-application.html").read_text(encoding="utf-8")
    assert '<span class="caption-text">app.py</span>' in guide
    concepts = (tmp_path / "site" / "concepts.html").read_text(encoding="utf-8")
    assert 'src="_images/concepts.svg"' in concepts
    assert (tmp_path / "site" / "_images" / "concepts.svg").is_file()
    assert (tmp_path / "site" / "searchindex.js").stat().st_size > 100_000
