"""What the checker finds, and the error of a text that it cannot read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from domain.errors import InvalidError
from domain.releases.changes import Certainty, Change, Kind
from domain.releases.version import Release

#: Findings of one text; the report says if there are more.
MOST_FINDINGS = 1_000


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
        program runs, and if only some of such requests fail or mean something else.
        """
        is_partial = self.change.kind in {Kind.DEFAULT_CHANGED, Kind.LIMIT_APPLIED}
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
