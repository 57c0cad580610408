"""Findings of the checker, and errors for text that is unreadable or takes too long.

Submitted text may be malicious, so readers limit their time with `iterate_within_limit`. The limit
applies to the processor time of the thread, so that a busy machine does not cause timeouts.
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

#: Maximum number of findings in one text. The report indicates whether there are more.
MAX_FINDINGS = 1_000
#: Number of items between two checks of the clock. A check takes as long as one item.
_ITEMS_PER_CLOCK_CHECK = 64
#: Deadline in seconds of the thread's processor time. It is a context variable, since otherwise all
#: readers would have to pass the deadline to each other.
_deadline_time: ContextVar[float] = ContextVar("end of reading", default=inf)


class UnreadableContentError(InvalidError):
    """Error for content that does not match its name or its first lines.

    The message contains the line number, if it is known.
    """

    def __init__(self, message: str, *, line: int | None = None) -> None:
        """Build the message from the problem, which must not contain any of the content."""
        where = "" if line is None else f" (line {line})"
        super().__init__(f"{message}{where}.", field="content")


class CheckTimeoutError(InvalidError):
    """Error for content that takes longer to read than the time limit."""

    def __init__(self) -> None:
        """Set a message that suggests sending smaller parts or using the command line."""
        message = (
            "Checking the content takes too long. Send smaller parts, or use the command gatebell "
            "releases check."
        )
        super().__init__(message, field="content")


class DetectedChange(NamedTuple):
    """A change that affects a line of the checked text."""

    change: Change
    #: Line number, starting at 1.
    line: int
    reason: str
    #: True if all parameters that determine the result of the call were read. False if only a name
    #: was found, or if parameters are known only at run time.
    is_certain: bool = True
    #: Position of the request in a recording, starting at 1. None for other texts.
    request: int | None = None


@dataclass(frozen=True)
class Finding:
    """A usage in the checked text that breaks in a release."""

    change: Change
    #: Line number, starting at 1.
    line: int
    #: Description, which contains no values from the text.
    reason: str
    #: True if all parameters that determine the result of the call were read.
    is_certain: bool
    #: Position of the request in a recording, starting at 1. None for other texts.
    request: int | None = None

    @property
    def certainty(self) -> Certainty:
        """The certainty that the usage breaks.

        It is `POSSIBLE` in three cases:

        - Only a name was found, without its call.
        - Parameters that determine the result are known only at run time.
        - Only some requests to the operation fail or change their meaning, and parameters do not
          determine which requests.
        """
        depends = self.change.kind in {
            ReleaseChangeKind.DEFAULT_CHANGED,
            ReleaseChangeKind.LIMIT_APPLIED,
        }
        is_partial = depends and not self.change.depends_on_values
        return Certainty.SURE if self.is_certain and not is_partial else Certainty.POSSIBLE


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """The findings in a checked text, and the kind of text that was detected."""

    #: Display name of the detected kind of text.
    kind: str
    #: Findings, ordered by line.
    findings: Sequence[Finding]
    #: True if some findings were omitted.
    is_truncated: bool


def build_check_report(
    kind: str, detected_changes: Iterator[DetectedChange], release: Release
) -> CheckReport:
    """Return a report of the usages that break in the given release or in an earlier release.

    Each change is included once per line or, in a HAR file, once per request.
    """
    kept: dict[tuple[str, int, int | None], Finding] = {}
    is_cut = False
    for each in detected_changes:
        key = (each.change.id, each.line, each.request)
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
    ordered = sorted(
        kept.values(),
        key=lambda each: (each.line, each.request or 0, each.change.effective_release),
    )
    return CheckReport(kind=kind, findings=tuple(ordered), is_truncated=is_cut)


Item = TypeVar("Item")


@contextmanager
def limit_processor_time(seconds: float) -> Iterator[None]:
    """Limit the processor time of a `with` block to a number of seconds."""
    before = _deadline_time.set(thread_time() + seconds)
    try:
        yield
    finally:
        _deadline_time.reset(before)


def check_time_limit() -> None:
    """Check that the time limit is not exceeded.

    Raise CheckTimeoutError if the time limit is exceeded.
    """
    if thread_time() > _deadline_time.get():
        raise CheckTimeoutError


def iterate_within_limit(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items until the time limit is exceeded.

    Raise CheckTimeoutError if it is exceeded.
    """
    for number, item in enumerate(items):
        if number % _ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        yield item


def read_numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, starting with line 1, without copying the text."""
    yield from iterate_within_limit(_split_lines(text))


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    at, number = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield number, text[at:end].rstrip("\r")
        at, number = end + 1, number + 1
