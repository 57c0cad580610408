"""Measurements of the same load on one host or split over several, with processor use."""

import resource
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from bench.load import CONNECTIONS, THREADS, LoadTarget
from bench.machine import compute_busy_shares, read_core_ticks
from bench.processes import measure_processor_seconds
from bench.rounds import create_run
from bench.samples import Sample
from bench.scale.hosts import RunningHosts
from bench.workloads import RequestKind
from tests.support.service.live import LiveGatebell

WEB, WORKERS, POSTGRES, LOAD, OTHERS = "web", "workers", "Postgres", "wrk", "others"


@dataclass(frozen=True, kw_only=True)
class HostRun:
    """The result of a run."""

    #: Correct responses per second on all hosts.
    rate: float
    #: 99th percentile of the slowest host in milliseconds.
    p99: float
    errors: int
    right: int
    #: Load of each core, from 0 to 1.
    cores: tuple[float, ...]
    #: Number of cores that each program used.
    spent: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class HostResult:
    """The result of an arrangement for one kind of request."""

    work: RequestKind
    hosts: int
    looks: tuple[HostRun, ...]

    @property
    def rate(self) -> float:
        """Requests per second. This and the values below are medians of the rounds."""
        return statistics.median(each.rate for each in self.looks)

    @property
    def p99(self) -> float:
        """99th percentile in milliseconds."""
        return statistics.median(each.p99 for each in self.looks)

    @property
    def errors(self) -> int:
        """Number of wrong responses in all rounds."""
        return sum(each.errors for each in self.looks)

    @property
    def cores(self) -> tuple[float, ...]:
        """Load of each core, from 0 to 1."""
        columns = zip(*(each.cores for each in self.looks), strict=True)
        return tuple(statistics.median(column) for column in columns)

    @property
    def spent(self) -> Mapping[str, float]:
        """Number of cores that each program used."""
        names = self.looks[0].spent
        return {name: statistics.median(each.spent[name] for each in self.looks) for name in names}


@dataclass(frozen=True, kw_only=True)
class HostArrangement:
    """Some of the hosts, which share the load. The other hosts are idle."""

    hosts: RunningHosts
    lives: Sequence[LiveGatebell]
    postgres_pid: int

    def measure(self, work: RequestKind, seconds: int) -> HostRun:
        """Load the hosts for `seconds` seconds."""
        share, threads = len(self.lives), max(1, THREADS // len(self.lives))
        targets = [
            LoadTarget(
                self.hosts.shots[work],
                port=live.port,
                connections=CONNECTIONS // share,
                threads=threads,
            )
            for live in self.lives
        ]
        began, ticks, spent = monotonic(), read_core_ticks(), self._spent()
        with ThreadPoolExecutor(share) as loads:
            samples = list(loads.map(lambda each: each.measure(create_run(seconds)), targets))
        took, cores = monotonic() - began, compute_busy_shares(ticks, read_core_ticks())
        programs = {name: (now - spent[name]) / took for name, now in self._spent().items()}
        return _build_run(samples, cores, programs)

    def _spent(self) -> dict[str, float]:
        load = resource.getrusage(resource.RUSAGE_CHILDREN)
        markers = {WEB: "gunicorn", WORKERS: "web.jobs.worker"}
        return {
            **{
                name: sum(measure_processor_seconds(each.pid, marker) for each in self.hosts.lives)
                for name, marker in markers.items()
            },
            POSTGRES: measure_processor_seconds(self.postgres_pid),
            LOAD: load.ru_utime + load.ru_stime,
        }


def _build_run(
    samples: Sequence[Sample], cores: tuple[float, ...], programs: Mapping[str, float]
) -> HostRun:
    others = max(0.0, sum(cores) - sum(programs.values()))
    return HostRun(
        rate=sum(each.rate for each in samples),
        p99=max(each.p99 for each in samples),
        errors=sum(each.errors for each in samples),
        right=sum(each.right for each in samples),
        cores=cores,
        spent={**programs, OTHERS: others},
    )
