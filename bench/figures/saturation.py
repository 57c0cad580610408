"""Measures how many requests per second the service answers, and their processor time.

wrk sends requests over keep-alive connections, each as soon as the last response was read. Used
processor time includes all processes of the service and of Postgres.
"""

import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from bench.durable_postgres import RunningPostgres
from bench.figures.requests import build_figure_shots
from bench.gatebell import RunningGatebell, running_gatebell
from bench.load import LoadTarget
from bench.noisy_neighbors.neighbor_service import get_default_password_settings
from bench.processes import compute_seconds_between, measure_processor_times
from bench.rounds import MIN_RESPONSES, create_run
from bench.samples import CannotMeasureError, NoResponseError, Sample
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import RequestKind
from tests.support.service.certificates import make_certificate

#: Factors by which the duration of a run is multiplied until there is a response.
_DURATION_FACTORS = (1, 5, 20)
_SETTLE_SECONDS, _SETTLE_PATIENCE = 0.25, 20.0
#: Number of processors that an idle service may use.
_MAX_IDLE_PROCESSORS = 0.2


@dataclass(frozen=True, kw_only=True)
class ServiceArrangement:
    """The settings with which the service is started."""

    processes: int
    has_tls: bool

    def __str__(self) -> str:
        """Return a description of the arrangement."""
        processes = "one web process" if self.processes == 1 else f"{self.processes} web processes"
        return f"{processes}, {'TLS' if self.has_tls else 'without TLS'}"


ARRANGEMENTS = tuple(
    ServiceArrangement(processes=processes, has_tls=has_tls)
    for has_tls in (False, True)
    for processes in (2, 1)
)


@dataclass(frozen=True, kw_only=True)
class RunningArrangement:
    """A running service in an arrangement."""

    arrangement: ServiceArrangement
    running: RunningGatebell
    shots: Mapping[RequestKind, Shot]
    postgres: RunningPostgres

    def target(self, work: RequestKind) -> LoadTarget:
        """Return the load target for a kind of request."""
        live = self.running.live
        return LoadTarget(self.shots[work], port=live.port, scheme=live.url.partition(":")[0])

    def times(self) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Return the processor times of the service's processes and of Postgres."""
        return measure_processor_times(self.running.live.pid), measure_processor_times(
            self.postgres.pid
        )


@dataclass(frozen=True, kw_only=True)
class ProcessorUsage:
    """The used processor time in seconds."""

    service: float
    postgres: float

    @property
    def both(self) -> float:
        """Total of the service and Postgres."""
        return self.service + self.postgres


@contextmanager
def measure_usage(place: RunningArrangement) -> Iterator[list[ProcessorUsage]]:
    """Append the processor time that the block uses to the yielded list."""
    found: list[ProcessorUsage] = []
    before = place.times()
    yield found
    service, postgres = map(compute_seconds_between, before, place.times())
    found.append(ProcessorUsage(service=service, postgres=postgres))


@dataclass(frozen=True, kw_only=True)
class SaturationResult:
    """The result of one kind of request in one arrangement, with medians of the rounds."""

    arrangement: ServiceArrangement
    work: RequestKind
    samples: Sequence[Sample]
    usages: Sequence[ProcessorUsage]

    @property
    def rate(self) -> float:
        """Correct responses per second."""
        return statistics.median(each.rate for each in self.samples)

    @property
    def rates(self) -> tuple[float, float]:
        """Lowest and highest rate of the rounds."""
        found = [each.rate for each in self.samples]
        return min(found), max(found)

    @property
    def per_used(self) -> float:
        """Correct responses per processor second of the service and Postgres."""
        pairs = zip(self.samples, self.usages, strict=True)
        return statistics.median(sample.right / max(used.both, 1e-6) for sample, used in pairs)

    @property
    def per_processor(self) -> float:
        """Correct responses per second for each processor of the machine."""
        return self.rate / (os.cpu_count() or 1)

    @property
    def postgres_share(self) -> float:
        """Share of Postgres in the processor time, from 0 to 1."""
        return statistics.median(each.postgres / max(each.both, 1e-6) for each in self.usages)

    @property
    def percentiles(self) -> tuple[float, float, float]:
        """50th, 95th and 99th percentiles in milliseconds."""
        columns = ([getattr(each, name) for each in self.samples] for name in ("p50", "p95", "p99"))
        p50, p95, p99 = map(statistics.median, columns)
        return p50, p95, p99

    @property
    def failures(self) -> int:
        """Number of wrong responses and broken connections in all rounds."""
        return sum(each.errors for each in self.samples)


@contextmanager
def run_arrangements(
    arrangements: Sequence[ServiceArrangement],
    directory: Path,
    postgres: RunningPostgres,
    counts: Counts,
) -> Iterator[Sequence[RunningArrangement]]:
    """Start the service once for each arrangement, each with a separate database."""
    certificate = str(make_certificate(directory))
    tls = {"TLS_CERTIFICATE": certificate, "TLS_KEY": certificate}
    with ExitStack() as stack:
        places = []
        for number, each in enumerate(arrangements):
            _print_line(f"Starting: {each}")
            settings = {
                "WEB_CONCURRENCY": str(each.processes),
                **get_default_password_settings(),
                **(tls if each.has_tls else {}),
            }
            running = stack.enter_context(
                running_gatebell(
                    directory / f"place-{number}",
                    postgres.databases.new_database(),
                    counts,
                    settings=settings,
                )
            )
            shots = {**running.shots, **build_figure_shots(running)}
            place = RunningArrangement(
                arrangement=each, running=running, shots=shots, postgres=postgres
            )
            places.append(place)
        yield places


def measure_rows(
    places: Sequence[RunningArrangement],
    works: Sequence[RequestKind],
    *,
    rounds: int,
    seconds: int,
    is_warmed_up: bool = True,
) -> Iterator[SaturationResult]:
    """Measure each kind of request, in interleaved rounds of all arrangements."""
    for work in works:
        _print_line(work.label)
        targets = [(place, place.target(work)) for place in places]
        found: list[tuple[list[Sample], list[ProcessorUsage]]] = [([], []) for _ in places]
        for place, target in targets:
            target.probe(create_run(1).number)
            if is_warmed_up:
                _take_sample(target, work, 1)
                _wait_until_idle(place)
        for number in range(rounds):
            lanes = list(zip(targets, found, strict=True))
            # The order alternates, so that no arrangement always follows the same one.
            for (place, target), (samples, usages) in lanes if number % 2 == 0 else lanes[::-1]:
                with measure_usage(place) as used:
                    sample = _take_sample(
                        target, work, seconds, answers=0 if is_warmed_up else MIN_RESPONSES
                    )
                    _wait_until_idle(place)
                samples.append(sample)
                usages.extend(used)
                _print_line(f"  {place.arrangement!s:<32}{sample.rate:>10.1f}/s")
        for place, (samples, usages) in zip(places, found, strict=True):
            yield SaturationResult(
                arrangement=place.arrangement, work=work, samples=samples, usages=usages
            )


def _take_sample(
    target: LoadTarget, work: RequestKind, seconds: int, *, answers: int = 0
) -> Sample:
    """Take a sample, with a longer run if a busy machine returned no correct response.

    After `answers` responses of each thread, no further requests are sent, unless it is 0.
    """
    for times in _DURATION_FACTORS:
        with suppress(NoResponseError):
            sample = target.measure(create_run(seconds * work.stretch * times, answers=answers))
            if sample.right or not answers:
                return sample
            answers = 0  # A busy service rejects many logins before it accepts one.
    raise CannotMeasureError(f"{work.label}: no response")


def _wait_until_idle(place: RunningArrangement) -> None:
    """Wait until the service has finished its pending work, such as password hashes."""
    deadline = monotonic() + _SETTLE_PATIENCE
    while monotonic() < deadline:
        with measure_usage(place) as used:
            sleep(_SETTLE_SECONDS)
        if used[0].service < _MAX_IDLE_PROCESSORS * _SETTLE_SECONDS:
            return


def check_results(rows: Sequence[SaturationResult]) -> None:
    """Check that each kind of request had a correct response. Raise CannotMeasureError if not."""
    for row in rows:
        if not any(sample.right for sample in row.samples):
            raise CannotMeasureError(f"{row.work.label}, {row.arrangement}: no correct response")


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
