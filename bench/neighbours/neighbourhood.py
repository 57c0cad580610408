"""Measures ordinary requests while noisy neighbors are active: `make bench-neighbours`.

Eight connections check tokens and send new alerts, four each, with a pause of twenty milliseconds
after each response. They run without and with each neighbor in turn, for several rounds. The
benchmark uses Postgres and SQLite, and the server that `make run` starts. It writes
docs/evidence/noisy-neighbors.md.

    python -m bench.neighbours.neighbourhood --only passwords,clones --rounds 3
    python -m bench.neighbours.neighbourhood --once
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

from bench.durable_postgres import durable_postgres
from bench.load import Target, find_wrk
from bench.machine import busy_processors, describe
from bench.neighbours.document import as_markdown
from bench.neighbours.findings import Finding, Neighbourhood
from bench.neighbours.freeze import Stillness, stand_still
from bench.neighbours.neighbours import NEIGHBOURS, PAGES, Answers
from bench.neighbours.place import FULL, SMALL, Place, Sizes, running_place
from bench.options import positive
from bench.rounds import next_run
from bench.samples import CannotMeasureError, Sample
from bench.workloads import Work
from domain.core.clock import system_clock

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "noisy-neighbors.md"
WORKS = (Work.TOKEN_INFO, Work.INTAKE)
FROZEN = "frozen"
_CONNECTIONS = 4
_PAUSE_MS = 20
_LEAD_SECONDS = 0.5
_CALM_SECONDS = 1.0
_WARM_SECONDS = 1.0
_STOPPED = 128 + signal.SIGTERM
_NAMES = (*NEIGHBOURS, FROZEN)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the command line."""

    only: tuple[str, ...]
    databases: tuple[str, ...]
    rounds: int
    seconds: int
    still_seconds: float
    sizes: Sizes
    #: True if everything is measured at full size, except for the number of paged users.
    is_full: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements, and write the document if everything was measured at full size."""
    # Without a handler, SIGTERM would leave servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_STOPPED))
    options = _read_options(arguments)
    find_wrk()
    busy = busy_processors()
    with ExitStack() as stack:
        postgres = stack.enter_context(durable_postgres())
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-neighbours-")))
        url = postgres.databases.new_database()
        machine = describe(url)
        neighbourhood = Neighbourhood(
            moment=system_clock(),
            machine=machine,
            busy=busy,
            rounds=options.rounds,
            seconds=options.seconds,
            sizes=options.sizes,
        )
        pids = {"postgres": postgres.pid, "sqlite": None}
        for database in options.databases:
            given = url if database == "postgres" else ""
            here = running_place(
                directory / database, given, options.sizes, postgres=pids[database]
            )
            with here as place:
                _measure_place(place, options, neighbourhood)
    text = as_markdown(neighbourhood)
    if options.is_full:
        DOCUMENT.write_text(text, encoding="utf-8")
        _say(f"The document is in {DOCUMENT}.")
    else:
        _say(text)
    return 0 if neighbourhood.is_whole else 1


def _measure_place(place: Place, options: Options, into: Neighbourhood) -> None:
    _say(place.database)
    for _ in range(2):  # so that each web process has handled every kind of request
        _ordinary(place, 1)
    for name in options.only:
        if name == FROZEN:
            into.stillnesses.append(_still(place, options))
        else:
            into.findings.extend(_measure(place, name, options))


def _measure(place: Place, name: str, options: Options) -> Iterator[Finding]:
    words, at_work = NEIGHBOURS[name]
    alone: dict[Work, list[Sample]] = {work: [] for work in WORKS}
    beside: dict[Work, list[Sample]] = {work: [] for work in WORKS}
    answers = Answers()
    if name != PAGES:  # its messages would have to be sent first
        with at_work(place):  # load what is loaded only once
            sleep(_WARM_SECONDS)
    for _ in range(options.rounds):
        _keep(_ordinary(place, options.seconds), alone)
        with at_work(place) as said:
            sleep(_LEAD_SECONDS)
            _keep(_ordinary(place, options.seconds), beside)
        answers.update(said)
        sleep(_CALM_SECONDS)
    for work in WORKS:
        finding = Finding(
            database=place.database,
            neighbour=words,
            work=work,
            alone=tuple(alone[work]),
            beside=tuple(beside[work]),
            answers=dict(answers),
        )
        _say(f"  {name:<16}{work:<12}{finding.line}")
        yield finding


def _still(place: Place, options: Options) -> Stillness:
    found = stand_still(place, options.still_seconds)
    for each in found.waits:
        _say(f"  {FROZEN:<16}{vars(each)}")
    return found


def _ordinary(place: Place, seconds: int) -> Mapping[Work, Sample]:
    """Check tokens and send alerts at the same time."""

    def measure(work: Work) -> Sample:
        target = Target(
            place.shots[work],
            port=place.live.port,
            connections=_CONNECTIONS,
            threads=1,
            pause_ms=_PAUSE_MS,
        )
        try:
            return target.measure(next_run(seconds))
        except CannotMeasureError:  # no response: the latency is at least the duration of the run
            return Sample(rate=0, p50=seconds * 1e3, p95=seconds * 1e3, p99=seconds * 1e3, errors=1)

    with ThreadPoolExecutor(len(WORKS)) as both:
        return dict(zip(WORKS, both.map(measure, WORKS), strict=True))


def _keep(samples: Mapping[Work, Sample], kept: Mapping[Work, list[Sample]]) -> None:
    for work, sample in samples.items():
        kept[work].append(sample)


def _read_options(arguments: Sequence[str] | None) -> Options:
    parser = ArgumentParser(
        prog="python -m bench.neighbours.neighbourhood",
        description="Measure ordinary requests while noisy neighbors are active.",
    )
    only = f"comma-separated neighbors: {', '.join(_NAMES)}"
    parser.add_argument("--only", type=_names, default=_NAMES, help=only)
    parser.add_argument("--no-sqlite", action="store_true", help="measure only on Postgres")
    parser.add_argument("--no-postgres", action="store_true", help="measure only on SQLite")
    parser.add_argument("--rounds", type=positive, default=3, help="number of rounds (3)")
    parser.add_argument("--seconds", type=positive, default=4, help="seconds of each run (4)")
    parser.add_argument(
        "--people", type=positive, default=FULL.people, help="number of paged users (10000)"
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="run everything once for a second with little data, to check that it works",
    )
    given = parser.parse_args(arguments)
    left_out = {"postgres": given.no_postgres, "sqlite": given.no_sqlite}
    databases = tuple(name for name, is_out in left_out.items() if not is_out)
    return Options(
        only=given.only,
        databases=databases,
        rounds=1 if given.once else given.rounds,
        seconds=1 if given.once else given.seconds,
        still_seconds=1.0 if given.once else 5.0,
        sizes=SMALL if given.once else replace(FULL, people=given.people),
        is_full=not given.once and given.only == _NAMES and len(databases) == len(left_out),
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if unknown := set(names) - set(_NAMES):
        raise ArgumentTypeError(f"unknown: {', '.join(unknown)}; choose from {', '.join(_NAMES)}")
    return names


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
