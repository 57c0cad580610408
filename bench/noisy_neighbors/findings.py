"""Measurements with noisy neighbors."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bench.machine import MachineDescription
from bench.noisy_neighbors.freeze import FreezeResult
from bench.noisy_neighbors.neighbor_service import NeighborSizes
from bench.samples import Sample
from bench.workloads import RequestKind

#: Maximum ratio of the 99th percentiles with and without a neighbor.
MAX_RATIO = 2.0


@dataclass(frozen=True, kw_only=True)
class NeighborResult:
    """The results of one kind of request without and with a neighbor, round by round."""

    database: str
    neighbour: str
    work: RequestKind
    alone: Sequence[Sample]
    beside: Sequence[Sample]
    #: Number of the neighbor's responses by status.
    answers: Mapping[str, int]

    @property
    def ratio(self) -> float:
        """Ratio of the 99th percentiles with and without the neighbor."""
        return compute_median(self.beside, get_p99) / max(
            compute_median(self.alone, get_p99), 0.001
        )

    @property
    def is_met(self) -> bool:
        """True if the ratio meets the goal."""
        return self.ratio <= MAX_RATIO

    @property
    def errors(self) -> int:
        """Number of wrong responses and broken connections next to the neighbor."""
        return sum(each.errors for each in self.beside)

    @property
    def line(self) -> str:
        """Line to print during the measurement."""
        return (
            f"p50 {compute_median(self.alone, get_p50):>7.1f} "
            f"→{compute_median(self.beside, get_p50):>8.1f}  "
            f"p99 {compute_median(self.alone, get_p99):>7.1f} "
            f"→{compute_median(self.beside, get_p99):>8.1f} ms  "
            f"ratio {self.ratio:>5.1f}  {self.errors} failures  {dict(self.answers)}"
        )


def get_p50(sample: Sample) -> float:
    """Return the median of a run in milliseconds."""
    return sample.p50


def get_p99(sample: Sample) -> float:
    """Return the 99th percentile of a run in milliseconds."""
    return sample.p99


def compute_median(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float:
    """Return the median of the rounds."""
    return statistics.median(map(figure, samples))


@dataclass(kw_only=True)
class NeighborResults:
    """All results of the measurements."""

    moment: datetime
    machine: MachineDescription
    #: Number of busy processors before the measurements.
    busy: float
    rounds: int
    seconds: int
    sizes: NeighborSizes
    findings: list[NeighborResult] = field(default_factory=list)
    stillnesses: list[FreezeResult] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """True if each request had correct responses, and all recovered from the freeze."""
        served = all(any(each.right for each in one.alone) for one in self.findings)
        waits = [each for one in self.stillnesses for each in one.waits]
        return served and all(each.back_after is not None for each in waits)
