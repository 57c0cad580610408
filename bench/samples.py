"""Runs and their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Run:
    """One of the interleaved runs."""

    #: Unique number of the run, from which unique values are derived.
    number: int
    seconds: int
    #: Number of responses after which a thread or connection stops, or 0 for no limit.
    answers: int = 0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The result of a run, with latencies in milliseconds."""

    #: Correct responses per second.
    rate: float
    p50: float
    p95: float
    p99: float
    #: Number of correct responses.
    right: int = 0
    #: Number of wrong responses and broken connections.
    errors: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)


MeasureFunction = Callable[[Run], Sample]


class CannotMeasureError(Exception):
    """A run is not possible. The message is the reason."""


class NoResponseError(CannotMeasureError):
    """The run ended before the first response arrived."""
