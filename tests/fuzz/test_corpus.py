"""Replays every input that fuzzing has stored: parsers accept or reject it without failing."""

import pytest

from tests.fuzz.run import CORPUS
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_parsers_accept_or_reject_stored_fuzzing_inputs(name: str) -> None:
    kept = sorted((CORPUS / name).iterdir())
    assert kept
    for file in kept:
        TARGETS[name](file.read_bytes())
