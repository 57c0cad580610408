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
from bench.figures.requests import figure_shots
from bench.gatebell import RunningGatebell, running_gatebell
from bench.load import Target
from bench.neighbours.place import usual_passwords
from bench.processes import processor_times, seconds_between
from bench.rounds import next_run
from bench.samples import CannotMeasureError, NoAnswerError, Sample
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import Work
from tests.support.service.certificates import make_certificate

#: Factors by which the duration of a run is multiplied until there is a response.
_TRIED = (1, 5, 20)
_SETTLE_SECONDS, _SETTLE_PATIENCE = 0.25, 20.0
#: Number of processors that an idle service may use.
_IDLE = 0.2


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """The settings with which the service is started."""

    processes: int
    has_tls: bool

    def __str__(self) -> str:
        """Return a description of the arrangement."""
        processes = "one web process" if self.processes == 1 else f"{self.processes} web processes"
        return f"{processes}, {'TLS' if self.has_tls else 'without TLS'}"


ARRANGEMENTS = tuple(
    Arrangement(processes=processes, has_tls=has_tls)
    for has_tls in (False, True)
    for processes in (2, 1)
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A running service in an arrangement."""

    arrangement: Arrangement
    running: RunningGatebell
    shots: Mapping[Work, Shot]
    postgres: RunningPostgres

    def target(self, work: Work) -> Target:
        """Return the load target for a kind of request."""
        live = self.running.live
        return Target(self.shots[work], port=live.port, scheme=live.url.partition(":")[0])

    def times(self) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Return the processor times of the service's processes and of Postgres."""
        return processor_times(self.running.live.pid), processor_times(self.postgres.pid)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The used processor time in seconds."""

    service: float
    postgres: float

    @property
    def both(self) -> float:
        """Total of the service and Postgres."""
        return self.service + self.postgres


@contextmanager
def measured_usage(place: Place) -> Iterator[list[Usage]]:
    """Append the processor time that the block uses to the yielded list."""
    found: list[Usage] = []
    before = place.times()
    yield found
    service, postgres = map(seconds_between, before, place.times())
    found.append(Usage(service=service, postgres=postgres))


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one kind of request in one arrangement, with medians of the rounds."""

    arrangement: Arrangement
    work: Work
    samples: Sequence[Sample]
    usages: Sequence[Usage]

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
def running_places(
    arrangements: Sequence[Arrangement], directory: Path, postgres: RunningPostgres, counts: Counts
) -> Iterator[Sequence[Place]]:
    """Start the service once for each arrangement, each with a separate database."""
    certificate = str(make_certificate(directory))
    tls = {"TLS_CERTIFICATE": certificate, "TLS_KEY": certificate}
    with ExitStack() as stack:
        places = []
        for number, each in enumerate(arrangements):
            _say(f"Starting: {each}")
            settings = {
                "WEB_CONCURRENCY": str(each.processes),
                **usual_passwords(),
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
            shots = {**running.shots, **figure_shots(running)}
            place = Place(arrangement=each, running=running, shots=shots, postgres=postgres)
            places.append(place)
        yield places


def measure_rows(
    places: Sequence[Place],
    works: Sequence[Work],
    *,
    rounds: int,
    seconds: int,
    is_warmed_up: bool = True,
) -> Iterator[Row]:
    """Measure each kind of request, in interleaved rounds of all arrangements."""
    for work in works:
        _say(work.label)
        targets = [(place, place.target(work)) for place in places]
        found: list[tuple[list[Sample], list[Usage]]] = [([], []) for _ in places]
        for place, target in targets:
            target.probe(next_run(1).number)
            if is_warmed_up:
                _measure(target, work, 1)
                _settle(place)
        for number in range(rounds):
            lanes = list(zip(targets, found, strict=True))
            # The order alternates, so that no arrangement always follows the same one.
            for (place, target), (samples, usages) in lanes if number % 2 == 0 else lanes[::-1]:
                with measured_usage(place) as used:
                    sample = _measure(target, work, seconds)
                    _settle(place)
                samples.append(sample)
                usages.extend(used)
                _say(f"  {place.arrangement!s:<32}{sample.rate:>10.1f}/s")
        for place, (samples, usages) in zip(places, found, strict=True):
            yield Row(arrangement=place.arrangement, work=work, samples=samples, usages=usages)


def _measure(target: Target, work: Work, seconds: int) -> Sample:
    """Take a sample, with a longer run if a busy machine returned no response."""
    for times in _TRIED:
        with suppress(NoAnswerError):
            return target.measure(next_run(seconds * work.stretch * times))
    raise CannotMeasureError(f"{work.label}: no response")


def _settle(place: Place) -> None:
    """Wait until the service has finished its pending work, such as password hashes."""
    deadline = monotonic() + _SETTLE_PATIENCE
    while monotonic() < deadline:
        with measured_usage(place) as used:
            sleep(_SETTLE_SECONDS)
        if used[0].service < _IDLE * _SETTLE_SECONDS:
            return


def check_rows(rows: Sequence[Row]) -> None:
    """Raise CannotMeasureError if a kind of request had no correct response."""
    for row in rows:
        if not any(sample.right for sample in row.samples):
            raise CannotMeasureError(f"{row.work.label}, {row.arrangement}: no correct response")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
