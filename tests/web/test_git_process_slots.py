"""Tests of how callers share the Git transfer slots of a host."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from blueprints.git.process_slots import ProcessSlots, SlotCaller
from domain.git.errors import RepositoryBusyError

HOME, WORK, ELSEWHERE = "192.0.2.1", "192.0.2.2", "192.0.2.3"


def anonymous(address: str) -> SlotCaller:
    return SlotCaller(address=address, user_id=None)


def user(number: int, address: str = HOME) -> SlotCaller:
    return SlotCaller(address=address, user_id=number)


def served(directory: Path, callers: Sequence[SlotCaller]) -> list[bool]:
    """Return which callers get one of eight slots if none of them releases a slot."""
    slots = ProcessSlots(directory, count=8, wait_seconds=0)
    got = []
    with ExitStack() as held:
        for caller in callers:
            try:
                held.callback(slots.acquire_slot(caller).release_slot)
                got.append(True)
            except RepositoryBusyError:
                got.append(False)
    return got


@pytest.mark.parametrize(
    ("callers", "most"),
    [
        ([user(1)] * 8, 4),
        ([user(1), user(1, WORK)] * 4, 4),
        ([anonymous(HOME)] * 8, 2),
        ([user(1)] * 4 + [anonymous(HOME)] * 4, 4),
        ([anonymous(HOME)] * 2 + [user(1)] * 8, 4),
        ([anonymous(f"198.51.100.{number}") for number in range(8)], 4),
    ],
    ids=["user", "roaming", "anonymous", "both", "both the other way", "many anonymous"],
)
def test_a_caller_gets_at_most_its_share_of_the_slots(
    tmp_path: Path, callers: Sequence[SlotCaller], most: int
) -> None:
    assert sum(served(tmp_path, callers)) == most


def test_slots_stay_free_for_the_next_caller(tmp_path: Path) -> None:
    crowd = [anonymous(HOME)] * 2 + [anonymous(WORK)] * 2 + [user(1, ELSEWHERE)] * 3
    assert served(tmp_path, [*crowd, user(2, HOME)]) == [True] * 8
