"""Measures ordinary requests while noisy neighbors are active: `make bench-neighbors`.

Eight connections check tokens and send new alerts, four each, with a pause of twenty milliseconds
after each response. They run without and with each neighbor in turn, for several rounds. The
benchmark uses Postgres and SQLite, and the server that `make run` starts. It writes
docs/evidence/noisy-neighbors.md.

    python -m bench.noisy_neighbors.benchmark --only passwords,clones --rounds 3
    python -m bench.noisy_neighbors.benchmark --once
"""

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

from bench.durable_postgres import start_durable_postgres
from bench.load import LoadTarget, find_wrk
from bench.machine import describe_machine, measure_busy_processors
from bench.noisy_neighbors.document import format_neighbor_results
from bench.noisy_neighbors.findings import NeighborResult, NeighborResults
from bench.noisy_neighbors.freeze import FreezeResult, measure_freeze
from bench.noisy_neighbors.neighbor_service import (
    FULL_SIZES,
    SMALL_SIZES,
    NeighborService,
    NeighborSizes,
    run_neighbor_service,
)
from bench.noisy_neighbors.neighbors import NEIGHBORS, PAGES, ResponseCounts
from bench.options import parse_positive
from bench.rounds import create_run
from bench.samples import CannotMeasureError, Sample
from bench.workloads import RequestKind
from domain.core.clock import read_system_clock

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "noisy-neighbors.md"
MEASURED_KINDS = (RequestKind.TOKEN_INFO, RequestKind.INTAKE)
FROZEN = "frozen"
_CONNECTIONS = 4
_PAUSE_MS = 20
_LEAD_SECONDS = 0.5
_CALM_SECONDS = 1.0
_WARM_UP_SECONDS = 1.0
_EXIT_STOPPED = 128 + signal.SIGTERM
_MEASUREMENT_NAMES = (*NEIGHBORS, FROZEN)


@dataclass(frozen=True, kw_only=True)
class NeighborOptions:
    """The options of the command line."""

    only: tuple[str, ...]
    databases: tuple[str, ...]
    rounds: int
    seconds: int
    still_seconds: float
    sizes: NeighborSizes
    #: True to run everything only once, to check that it works.
    once: bool
    #: True if everything is measured at full size, except for the number of paged users.
    is_full: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements, and write the document if everything was measured at full size."""
    # Without a handler, SIGTERM would leave servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_EXIT_STOPPED))
    options = _read_options(arguments)
    find_wrk()
    busy = measure_busy_processors()
    with ExitStack() as stack:
        postgres = stack.enter_context(start_durable_postgres())
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-neighbours-")))
        url = postgres.databases.new_database()
        machine = describe_machine(url)
        results = NeighborResults(
            moment=read_system_clock(),
            machine=machine,
            busy=busy,
            rounds=options.rounds,
            seconds=options.seconds,
            sizes=options.sizes,
        )
        pids = {"postgres": postgres.pid, "sqlite": None}
        for database in options.databases:
            given = url if database == "postgres" else ""
            here = run_neighbor_service(
                directory / database, given, options.sizes, postgres=pids[database]
            )
            with here as service:
                _measure_service(service, options, results)
    text = format_neighbor_results(results)
    if options.is_full:
        DOCUMENT.write_text(text, encoding="utf-8")
        _print_line(f"The document is in {DOCUMENT}.")
    else:
        _print_line(text)
    return 0 if results.is_whole else 1


def _measure_service(
    service: NeighborService, options: NeighborOptions, into: NeighborResults
) -> None:
    _print_line(service.database)
    # Two runs, so that each web process has handled every kind of request.
    for _ in range(0 if options.once else 2):
        _measure_ordinary_requests(service, 1)
    for name in options.only:
        if name == FROZEN:
            into.stillnesses.append(_measure_freeze(service, options))
        else:
            into.findings.extend(_measure(service, name, options))


def _measure(
    service: NeighborService, name: str, options: NeighborOptions
) -> Iterator[NeighborResult]:
    words, at_work = NEIGHBORS[name]
    alone: dict[RequestKind, list[Sample]] = {work: [] for work in MEASURED_KINDS}
    beside: dict[RequestKind, list[Sample]] = {work: [] for work in MEASURED_KINDS}
    answers = ResponseCounts()
    if name != PAGES and not options.once:  # the messages of PAGES would have to be sent first
        with at_work(service):  # load what is loaded only once
            sleep(_WARM_UP_SECONDS)
    for _ in range(options.rounds):
        _append_samples(_measure_ordinary_requests(service, options.seconds), alone)
        with at_work(service) as said:
            sleep(_LEAD_SECONDS)
            _append_samples(_measure_ordinary_requests(service, options.seconds), beside)
        answers.update(said)
        sleep(0 if options.once else _CALM_SECONDS)
    for work in MEASURED_KINDS:
        finding = NeighborResult(
            database=service.database,
            neighbour=words,
            work=work,
            alone=tuple(alone[work]),
            beside=tuple(beside[work]),
            answers=dict(answers),
        )
        _print_line(f"  {name:<16}{work:<12}{finding.line}")
        yield finding


def _measure_freeze(service: NeighborService, options: NeighborOptions) -> FreezeResult:
    found = measure_freeze(service, options.still_seconds)
    for each in found.waits:
        _print_line(f"  {FROZEN:<16}{vars(each)}")
    return found


def _measure_ordinary_requests(
    service: NeighborService, seconds: int
) -> Mapping[RequestKind, Sample]:
    """Check tokens and send alerts at the same time."""

    def measure(work: RequestKind) -> Sample:
        target = LoadTarget(
            service.shots[work],
            port=service.live.port,
            connections=_CONNECTIONS,
            threads=1,
            pause_ms=_PAUSE_MS,
        )
        try:
            return target.measure(create_run(seconds))
        except CannotMeasureError:  # no response: the latency is at least the duration of the run
            return Sample(rate=0, p50=seconds * 1e3, p95=seconds * 1e3, p99=seconds * 1e3, errors=1)

    with ThreadPoolExecutor(len(MEASURED_KINDS)) as both:
        return dict(zip(MEASURED_KINDS, both.map(measure, MEASURED_KINDS), strict=True))


def _append_samples(
    samples: Mapping[RequestKind, Sample], kept: Mapping[RequestKind, list[Sample]]
) -> None:
    for work, sample in samples.items():
        kept[work].append(sample)


def _read_options(arguments: Sequence[str] | None) -> NeighborOptions:
    parser = ArgumentParser(
        prog="python -m bench.noisy_neighbors.benchmark",
        description="Measure ordinary requests while noisy neighbors are active.",
    )
    only = f"comma-separated neighbors: {', '.join(_MEASUREMENT_NAMES)}"
    parser.add_argument("--only", type=_parse_names, default=_MEASUREMENT_NAMES, help=only)
    parser.add_argument("--no-sqlite", action="store_true", help="measure only on Postgres")
    parser.add_argument("--no-postgres", action="store_true", help="measure only on SQLite")
    parser.add_argument("--rounds", type=parse_positive, default=3, help="number of rounds (3)")
    parser.add_argument("--seconds", type=parse_positive, default=4, help="seconds of each run (4)")
    parser.add_argument(
        "--people",
        type=parse_positive,
        default=FULL_SIZES.people,
        help="number of paged users (10000)",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="run everything once for a second with little data, to check that it works",
    )
    given = parser.parse_args(arguments)
    left_out = {"postgres": given.no_postgres, "sqlite": given.no_sqlite}
    databases = tuple(name for name, is_out in left_out.items() if not is_out)
    return NeighborOptions(
        only=given.only,
        databases=databases,
        rounds=1 if given.once else given.rounds,
        seconds=1 if given.once else given.seconds,
        still_seconds=1.0 if given.once else 5.0,
        once=given.once,
        sizes=SMALL_SIZES if given.once else replace(FULL_SIZES, people=given.people),
        is_full=not given.once
        and given.only == _MEASUREMENT_NAMES
        and len(databases) == len(left_out),
    )


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if unknown := set(names) - set(_MEASUREMENT_NAMES):
        raise ArgumentTypeError(
            f"unknown: {', '.join(unknown)}; choose from {', '.join(_MEASUREMENT_NAMES)}"
        )
    return names


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
