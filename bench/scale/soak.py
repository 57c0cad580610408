"""A long load of everything in turn, to see whether the web processes grow."""

import sys
from dataclasses import dataclass
from time import monotonic

from bench.contenders import Contender
from bench.rounds import next_run
from bench.samples import CannotMeasureError, Measure
from bench.workloads import COMPARED, Work

_RUN_SECONDS = 5
#: Work for which nothing runs out.
_WORKS = tuple(work for work in COMPARED if work not in {Work.CODE, Work.REFRESH, Work.LARGE})


@dataclass(frozen=True, kw_only=True)
class Soak:
    """How large the largest worker was, in MiB, after each turn through all work."""

    minutes: int
    memory: tuple[float, ...]
    #: Wrong answers, and runs without any.
    errors: int

    @property
    def growth(self) -> float:
        """MiB from the end of the first fifth, when all is warm, to the end."""
        return self.memory[-1] - self.memory[len(self.memory) // 5]


def soak(contender: Contender, minutes: int) -> Soak:
    """Load it for so many minutes, and at least one turn."""
    sys.stdout.write(f"Soaking {contender.name} for {minutes} minutes\n")
    sys.stdout.flush()
    deadline = monotonic() + minutes * 60
    memory: list[float] = []
    errors = 0
    while not memory or monotonic() < deadline:
        for work in _WORKS:
            errors += _errors(contender.measures[work])
        memory.append(contender.memory())
    return Soak(minutes=minutes, memory=tuple(memory), errors=errors)


def _errors(measure: Measure) -> int:
    try:
        return measure(next_run(_RUN_SECONDS)).errors
    except CannotMeasureError as error:
        sys.stdout.write(f"  {error}\n")
        return 1
