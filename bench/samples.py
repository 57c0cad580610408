"""What a run measures, and what is run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Run:
    """One of the interleaved runs."""

    #: Of all runs, so that what must be new is new.
    number: int
    seconds: int
    #: How many answers are enough for a thread or connection that asks; 0 for all that come.
    answers: int = 0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What came of a run; latencies in milliseconds."""

    #: Right answers a second.
    rate: float
    p50: float
    p95: float
    p99: float
    #: Right answers in all.
    right: int = 0
    #: Answers other than the right one, and connections that broke.
    errors: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)


Measure = Callable[[Run], Sample]


class CannotMeasureError(Exception):
    """A run cannot be had; the text is the reason."""


class NoAnswerError(CannotMeasureError):
    """The run was over before the first answer had come."""
