"""A long load with all kinds of requests in turn, to find out whether web processes grow."""

import sys
from dataclasses import dataclass
from time import monotonic

from bench.contenders import Contender
from bench.rounds import create_run
from bench.samples import CannotMeasureError, MeasureFunction
from bench.workloads import COMPARED_KINDS, RequestKind

_RUN_SECONDS = 5
#: Kinds of requests that use no prepared values.
_SOAK_KINDS = tuple(
    work
    for work in COMPARED_KINDS
    if work not in {RequestKind.CODE, RequestKind.REFRESH, RequestKind.LARGE}
)


@dataclass(frozen=True, kw_only=True)
class MemorySoak:
    """The memory of the largest worker in MiB, after each turn through all kinds of requests."""

    minutes: int
    memory: tuple[float, ...]
    #: Number of wrong responses, and of runs without responses.
    errors: int

    @property
    def growth(self) -> float:
        """Growth in MiB from the end of the first fifth, when the server is warm, to the end."""
        return self.memory[-1] - self.memory[len(self.memory) // 5]


def measure_memory_growth(contender: Contender, minutes: int) -> MemorySoak:
    """Load a contender for `minutes` minutes, and for at least one turn."""
    sys.stdout.write(f"Load with all kinds of requests: {contender.name}, {minutes} minutes\n")
    sys.stdout.flush()
    deadline = monotonic() + minutes * 60
    memory: list[float] = []
    errors = 0
    while not memory or monotonic() < deadline:
        for work in _SOAK_KINDS:
            errors += _count_errors(contender.measures[work])
        memory.append(contender.memory())
    return MemorySoak(minutes=minutes, memory=tuple(memory), errors=errors)


def _count_errors(measure: MeasureFunction) -> int:
    try:
        return measure(create_run(_RUN_SECONDS)).errors
    except CannotMeasureError as error:
        sys.stdout.write(f"  {error}\n")
        return 1
