"""Findings of the checker, and errors for texts that are unreadable or take too long.

A text may be malicious, so readers iterate through `iterate_within_limit`. The time limit is
processor time of the thread, so that a busy machine does not cause timeouts.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from time import thread_time
from typing import NamedTuple, TypeVar

from domain.core.errors import InvalidError
from domain.releases.changes import Certainty, Change, ReleaseChangeKind
from domain.releases.version import Release

#: Maximum number of findings of one text. The report indicates whether there are more.
MAX_FINDINGS = 1_000
#: Number of items between two checks of the clock. A check takes as long as an item.
_ITEMS_PER_CLOCK_CHECK = 64
#: Deadline in seconds of the thread's processor time. It is a context variable, because readers
#: call each other at every level and would all need an argument.
_deadline_time: ContextVar[float] = ContextVar("end of reading", default=inf)


class UnreadableContentError(InvalidError):
    """The content does not match its name or its first lines.

    The message contains the line number.
    """

    def __init__(self, message: str, *, line: int | None = None) -> None:
        """Build the message with the problem, which must not contain any of the content."""
        where = "" if line is None else f" (line {line})"
        super().__init__(f"{message}{where}.", field="content")


class CheckTimeoutError(InvalidError):
    """Reading the content takes longer than the limit for one text."""

    def __init__(self) -> None:
        """Use a message with alternatives."""
        message = (
            "Checking the content takes too long. Send smaller parts, or use the command gatebell "
            "releases check."
        )
        super().__init__(message, field="content")


class DetectedChange(NamedTuple):
    """A change that a reader found at a line, counted from 1."""

    change: Change
    line: int
    reason: str
    #: True if the call was read with everything that determines the result. False if only a name
    #: was found, or if parameters are known only at run time.
    is_certain: bool = True


@dataclass(frozen=True)
class Finding:
    """A usage that breaks."""

    change: Change
    #: Line number, counted from 1.
    line: int
    #: Description without any value of the content.
    reason: str
    #: True if the call was read with everything that determines the result.
    is_certain: bool

    @property
    def certainty(self) -> Certainty:
        """Return whether the usage definitely breaks.

        It is only possible in three cases:

        - Only a name was found, and not its call.
        - Decisive values are known only at run time.
        - Only some of these requests fail or change their meaning.

        Decisive parameters are read with the call.
        """
        depends = self.change.kind in {
            ReleaseChangeKind.DEFAULT_CHANGED,
            ReleaseChangeKind.LIMIT_APPLIED,
        }
        is_partial = depends and not self.change.depends_on_values
        return Certainty.SURE if self.is_certain and not is_partial else Certainty.POSSIBLE


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """The findings of a text."""

    #: Display name of the detected kind of text.
    kind: str
    #: Findings in the order of their lines.
    findings: Sequence[Finding]
    #: True if some findings were left out.
    is_cut: bool


def build_check_report(kind: str, found: Iterator[DetectedChange], release: Release) -> CheckReport:
    """Return the findings for a release and earlier ones, each change once per line."""
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
        if len(kept) == MAX_FINDINGS:
            is_cut = True
            break
        kept[key] = Finding(*each)
    ordered = sorted(kept.values(), key=lambda each: (each.line, each.change.removal))
    return CheckReport(kind=kind, findings=tuple(ordered), is_cut=is_cut)


Item = TypeVar("Item")


@contextmanager
def limit_processor_time(seconds: float) -> Iterator[None]:
    """Limit the processor time of the block to a number of seconds."""
    before = _deadline_time.set(thread_time() + seconds)
    try:
        yield
    finally:
        _deadline_time.reset(before)


def check_time_limit() -> None:
    """Check the time limit.

    Raise CheckTimeoutError after it.
    """
    if thread_time() > _deadline_time.get():
        raise CheckTimeoutError


def iterate_within_limit(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items within the time limit.

    Raise CheckTimeoutError after it.
    """
    for number, item in enumerate(items):
        if number % _ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        yield item


def read_numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, from 1, without copying the whole text."""
    yield from iterate_within_limit(_split_lines(text))


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    at, number = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield number, text[at:end].rstrip("\r")
        at, number = end + 1, number + 1
