"""Every change of the schedule is found where it breaks something, and nowhere near by."""

import pytest

from domain.releases.checker.checker import check
from domain.releases.schedule import SCHEDULE
from tests.domain.releases.checker.examples import BREAKS, Example
from tests.domain.releases.checker.near_misses import MISSES


def _found(example: Example) -> list[tuple[str, int]]:
    report = check(example.name, example.content.encode())
    return [(each.change.id, each.line) for each in report.findings]


@pytest.mark.parametrize("example", BREAKS, ids=lambda each: f"{each.change} {each.name}")
def test_what_breaks_is_found_at_its_line(example: Example) -> None:
    assert _found(example) == [(example.change, line) for line in example.lines]


@pytest.mark.parametrize("example", MISSES, ids=lambda each: f"{each.change} {each.name}")
def test_what_is_alike_is_not_found(example: Example) -> None:
    assert _found(example) == []


def test_there_is_an_example_of_every_change() -> None:
    assert {each.change for each in BREAKS} == {each.id for each in SCHEDULE}
    assert {each.change for each in MISSES} <= {each.id for each in SCHEDULE}
