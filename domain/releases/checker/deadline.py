"""Ends the reading of a text that takes too long, which somebody may have written for that purpose.

Readers go through what they read by `paced`. The time is that of the thread's processor: a busy
machine makes nothing too long.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import thread_time
from typing import TypeVar

from domain.releases.checker.findings import TakesTooLongError

Item = TypeVar("Item")
#: Items between two looks at the clock, which takes as long as an item.
_STEPS = 64
#: In seconds of the thread's processor time. Readers call each other at every depth, so that an
#: argument would be one of all their functions.
_end: ContextVar[float] = ContextVar("end of reading", default=inf)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """End what is read within after so many seconds of processor time."""
    before = _end.set(thread_time() + seconds)
    try:
        yield
    finally:
        _end.reset(before)


def go_on() -> None:
    """Raise TakesTooLongError if the time is over."""
    if thread_time() > _end.get():
        raise TakesTooLongError


def paced(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items; raise TakesTooLongError once the time is over."""
    for number, item in enumerate(items):
        if number % _STEPS == 0:
            go_on()
        yield item
