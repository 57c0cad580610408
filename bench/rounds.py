"""Interleaved runs: each round measures every contender once, so that noise affects all equally."""

import itertools
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bench.contenders import Contender
from bench.options import BenchmarkOptions
from bench.samples import CannotMeasureError, MeasureFunction, NoResponseError, Run, Sample
from bench.workloads import RequestKind

TIMES_SIGN = "\N{MULTIPLICATION SIGN}"
_run_numbers = itertools.count(1)
_WARM_UP_SECONDS = 1
#: Number of responses that is enough to show that something can be measured.
MIN_RESPONSES = 20
#: Factors by which the duration of a run is multiplied until there is a response.
_DURATION_FACTORS = (1, 5, 20)
#: Number of warm-up runs, so that each worker has handled a request.
_WARM_UP_RUNS = {RequestKind.LARGE: 4}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one contender for one kind of request."""

    work: RequestKind
    name: str
    samples: tuple[Sample, ...]
    #: Memory of the largest worker in MiB, after the warm-up and after the last round.
    memory_before: float
    memory_after: float
    #: Reason why results are missing.
    reason: str = ""

    @property
    def rate(self) -> float:
        """Requests per second, as the median of the rounds."""
        return statistics.median(each.rate for each in self.samples)

    @property
    def p50(self) -> float:
        """50th percentile in milliseconds, as the median of the rounds."""
        return statistics.median(each.p50 for each in self.samples)

    @property
    def p95(self) -> float:
        """95th percentile in milliseconds, as the median of the rounds."""
        return statistics.median(each.p95 for each in self.samples)

    @property
    def p99(self) -> float:
        """99th percentile in milliseconds, as the median of the rounds."""
        return statistics.median(each.p99 for each in self.samples)

    @property
    def errors(self) -> int:
        """Number of wrong responses in all rounds."""
        return sum(each.errors for each in self.samples)

    @property
    def statuses(self) -> dict[str, int]:
        """Number of responses by status in all rounds."""
        seen: Counter[str] = Counter()
        for each in self.samples:
            seen.update(each.statuses)
        return dict(seen)


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The ratio of two contenders' rates within the same rounds."""

    median: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        """Return the ratio with its spread, such as 0.64 times (0.60 to 0.68)."""
        return f"{self.median:.2f} {TIMES_SIGN} ({self.lowest:.2f} to {self.highest:.2f})"


def compute_ratio(one: Outcome | None, other: Outcome | None) -> Ratio | None:
    """Compare two contenders round by round, so that temporary slowdowns count little.

    Return None if there is nothing to compare.
    """
    if one is None or other is None:
        return None
    pairs = zip(one.samples, other.samples, strict=False)
    ratios = [each.rate / beside.rate for each, beside in pairs if beside.rate]
    if not ratios:
        return None
    return Ratio(median=statistics.median(ratios), lowest=min(ratios), highest=max(ratios))


def create_run(seconds: int, *, answers: int = 0) -> Run:
    """Return a run with a new number."""
    return Run(number=next(_run_numbers), seconds=seconds, answers=answers)


class _MeasuredContender:
    """A contender during the measurement of one kind of request."""

    def __init__(self, contender: Contender, work: RequestKind) -> None:
        self._contender = contender
        self._work = work
        self._measure: MeasureFunction = contender.measures[work]
        self._samples: list[Sample] = []
        self._before = 0.0
        #: Reason why further measurements are pointless.
        self._reason = ""
        #: Description of an error that occurred once.
        self._remark = ""

    def probe(self) -> None:
        """Check a single response."""
        probe = self._contender.probes.get(self._work)
        try:
            if probe is not None:
                probe(next(_run_numbers))
        except CannotMeasureError as error:
            self._reason = str(error)

    def warm(self) -> None:
        """Check a single response, and warm up the server."""
        self.probe()
        try:
            for _ in range(_WARM_UP_RUNS.get(self._work, 1)):
                with suppress(NoResponseError):
                    self._measure(self._run(_WARM_UP_SECONDS))
        except CannotMeasureError as error:
            self._reason = str(error)
        self._before = self._contender.memory()

    def measure(self, seconds: int, *, answers: int = 0) -> bool:
        """Take a sample; return False if a longer run may have a correct response."""
        if self._reason:
            return True
        try:
            sample = self._measure(self._run(seconds, answers=answers))
        except NoResponseError as error:
            self._remark = str(error)
            return False
        except CannotMeasureError as error:
            self._reason = str(error)
            return True
        self._samples.append(sample)
        _print_line(
            f"  {self._contender.name:<24}{sample.rate:>10.1f}/s  p99 {sample.p99:>8.1f} ms"
        )
        return bool(sample.rate)

    def _run(self, seconds: int, *, answers: int = 0) -> Run:
        return create_run(seconds * self._work.stretch, answers=answers)

    def outcome(self) -> Outcome:
        """Return the result."""
        return Outcome(
            work=self._work,
            name=self._contender.name,
            samples=tuple(self._samples),
            memory_before=self._before,
            memory_after=self._contender.memory(),
            reason=self._reason or self._remark,
        )


def measure_all(contenders: Sequence[Contender], options: BenchmarkOptions) -> Iterator[Outcome]:
    """Measure one kind of request after the other."""
    for work in options.works:
        _print_line(work.label)
        lanes = [_MeasuredContender(each, work) for each in contenders if work in each.measures]
        for lane in lanes:
            lane.warm()
        for number in range(options.rounds):
            # The order alternates, so that no contender always follows the same one.
            for lane in lanes if number % 2 == 0 else reversed(lanes):
                lane.measure(options.seconds)
        yield from (lane.outcome() for lane in lanes)


def measure_once(contenders: Sequence[Contender], options: BenchmarkOptions) -> Iterator[Outcome]:
    """Run everything once for a second, or longer if a busy machine returns no response."""
    for work in options.works:
        _print_line(work.label)
        lanes = [_MeasuredContender(each, work) for each in contenders if work in each.measures]
        for lane in lanes:
            lane.probe()
            for times in _DURATION_FACTORS:
                if lane.measure(options.seconds * times, answers=MIN_RESPONSES):
                    break
        yield from (lane.outcome() for lane in lanes)


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
