"""What the checker finds, and errors of texts that it cannot read or that take too long.

Somebody may have written a text for that purpose: readers go through what they read by `paced`. The
time is that of the thread's processor: a busy machine makes nothing too long.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from time import thread_time
from typing import NamedTuple, TypeVar

from domain.core.errors import InvalidError
from domain.releases.changes import Certainty, Change, Kind
from domain.releases.version import Release

#: Findings of one text; the report says if there are more.
MOST_FINDINGS = 1_000
#: Items between two looks at the clock, which takes as long as an item.
_STEPS = 64
#: In seconds of the thread's processor time. Readers call each other at every depth, so that an
#: argument would be one of all their functions.
_end: ContextVar[float] = ContextVar("end of reading", default=inf)


class UnreadableContentError(InvalidError):
    """The content is not what its name or its beginning says; the message names the line."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        """Take what is wrong, without any part of the content."""
        where = "" if line is None else f" (line {line})"
        super().__init__(f"{message}{where}.", field="content")


class TakesTooLongError(InvalidError):
    """Reading the content takes longer than one text may."""

    def __init__(self) -> None:
        """Say what to do instead."""
        message = (
            "Reading the content takes too long here. Send it in parts, or check it with the "
            "command gatebell releases check."
        )
        super().__init__(message, field="content")


class Found(NamedTuple):
    """A change that a reader met at a line, counted from 1."""

    change: Change
    line: int
    reason: str
    #: Whether the call itself was read, with all that decides, and not only a name that stands for
    #: it or a call whose parameters are known when it runs.
    is_certain: bool = True


@dataclass(frozen=True)
class Finding:
    """Something that breaks."""

    change: Change
    #: From 1.
    line: int
    #: What was met, without any value of the content.
    reason: str
    #: Whether the call was read with all that decides.
    is_certain: bool

    @property
    def certainty(self) -> Certainty:
        """Return whether this surely breaks.

        It is only possible if a name was met and not its call, if what decides is known when the
        program runs, and if only some of such requests fail or mean something else. Parameters
        that decide are read with the call.
        """
        depends = self.change.kind in {Kind.DEFAULT_CHANGED, Kind.LIMIT_APPLIED}
        is_partial = depends and not self.change.is_decided_by_values
        return Certainty.SURE if self.is_certain and not is_partial else Certainty.POSSIBLE


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found in a text."""

    #: What the text was taken for, in words.
    kind: str
    #: In order of the lines.
    findings: Sequence[Finding]
    #: Whether there are more findings than these.
    is_cut: bool


def report(kind: str, found: Iterator[Found], release: Release) -> Report:
    """Return what concerns a release or one before it, each change once a line."""
    kept: dict[tuple[str, int], Finding] = {}
    is_cut = False
    for each in found:
        key = (each.change.id, each.line)
        if not each.change.applies_in(release):
            continue
        if key in kept:
            if each.is_certain and not kept[key].is_certain:
                kept[key] = Finding(*each)
            continue
        if len(kept) == MOST_FINDINGS:
            is_cut = True
            break
        kept[key] = Finding(*each)
    ordered = sorted(kept.values(), key=lambda each: (each.line, each.change.removal))
    return Report(kind=kind, findings=tuple(ordered), is_cut=is_cut)


Item = TypeVar("Item")


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


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, from 1, without a copy of the whole text."""
    yield from paced(_lines(text))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at, number = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield number, text[at:end].rstrip("\r")
        at, number = end + 1, number + 1
