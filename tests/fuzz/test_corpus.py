"""Every input that fuzzing has kept is read or refused; no reader breaks on any of them."""

import pytest

from tests.fuzz.run import CORPUS
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_what_fuzzing_has_kept_is_read_or_refused(name: str) -> None:
    kept = sorted((CORPUS / name).iterdir())
    assert kept
    for file in kept:
        TARGETS[name](file.read_bytes())
