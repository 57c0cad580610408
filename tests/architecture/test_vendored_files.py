"""Vendored files for browsers are identical to the published ones."""

from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.service.live import ROOT

SUMS = sorted((ROOT / "static" / "vendor").glob("*/SHA256SUMS"))


@pytest.mark.parametrize("sums", SUMS, ids=lambda path: path.parent.name)
def test_vendored_files_match_their_checksums(sums: Path) -> None:
    listed = dict(line.split(" *")[::-1] for line in sums.read_text().splitlines())
    there = {
        file.name: sha256(file.read_bytes()).hexdigest()
        for file in sums.parent.iterdir()
        if file != sums
    }
    assert there == listed
    assert "LICENSE" in there
