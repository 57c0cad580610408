"""Figures in the form that other projects publish: `make bench BENCH_ARGS="--figures"`.

The benchmark writes bench/results/figures.md and figures.json. A smaller run with one part:

    python -m bench.compare --figures --only login --rounds 2 --minutes 1 --rate 50 --anyway
"""

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.constant_rate import Latencies
from bench.durable_intake.on_gatebell import measure_gatebell
from bench.durable_postgres import RunningPostgres, start_durable_postgres
from bench.figures.cold_start import COLD_START_KINDS, measure_cold_starts
from bench.figures.document import PublishedFigures, format_figures
from bench.figures.failover import measure_failovers
from bench.figures.fixed_rate import build_counts_at_rate, measure_at_rate
from bench.figures.saturation import (
    ARRANGEMENTS,
    RunningArrangement,
    SaturationResult,
    check_results,
    measure_rows,
    run_arrangements,
)
from bench.installs import ROOT
from bench.machine import MAX_BUSY_PROCESSORS, describe_machine, wait_for_calm
from bench.options import BenchmarkOptions
from bench.processes import list_process_family, read_proportional_mib, read_resident_mib
from bench.seed_counts import Counts, build_counts
from bench.workloads import RequestKind
from domain.core.clock import read_system_clock
from models import User
from tests.support.accounts.people import database_of

_RESULTS_FOLDER = ROOT / "bench" / "results"
_CALM_TIMEOUT_SECONDS = 90
_EXIT_TOO_BUSY = 3
_STARTS, _FAILOVERS = 5, 3
_INTAKE_RATE, _INTAKE_SECONDS, _INTAKE_FAULTS = 50, 300, 10
#: Values for a trial run, which only shows that everything works.
_ONCE_RATE, _ONCE_SECONDS, _ONCE_FAULTS = 20, 5, 1


def measure_figures(options: BenchmarkOptions) -> int:
    """Measure and write the document; return 1 if alerts were lost, 3 if the machine is busy."""
    is_calm_enough = options.once or options.anyway
    busy = wait_for_calm(0 if is_calm_enough else _CALM_TIMEOUT_SECONDS)
    if busy > MAX_BUSY_PROCESSORS and not is_calm_enough:
        sys.stderr.write(
            f"Other programs use {busy:.2f} processors. Use --anyway to measure anyway.\n"
        )
        return _EXIT_TOO_BUSY
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-figures-")))
        postgres = stack.enter_context(start_durable_postgres())
        figures = _measure(options, directory, postgres, busy)
    text = format_figures(figures)
    runs = json.dumps(figures, default=_convert_to_json, indent=2, ensure_ascii=False)
    sys.stdout.write(f"\n{text}")
    if not options.once:
        _RESULTS_FOLDER.mkdir(exist_ok=True)
        (_RESULTS_FOLDER / "figures.md").write_text(text, encoding="utf-8")
        (_RESULTS_FOLDER / "figures.json").write_text(runs, encoding="utf-8")
    return 0 if figures.intake.is_sound else 1


def _measure(
    options: BenchmarkOptions, directory: Path, postgres: RunningPostgres, busy: float
) -> PublishedFigures:
    once = options.once
    rate, seconds = (_ONCE_RATE, _ONCE_SECONDS) if once else (options.rate, 60 * options.minutes)
    machine = describe_machine(postgres.databases.new_database())
    # The two arrangements differ both in TLS and in the number of processes.
    arrangements = (ARRANGEMENTS[0], ARRANGEMENTS[-1]) if once else ARRANGEMENTS
    counts = _build_counts(options, rate, seconds)
    with run_arrangements(arrangements, directory, postgres, counts) as places:
        rows: tuple[SaturationResult, ...] = tuple(
            measure_rows(
                places,
                options.works,
                rounds=options.rounds,
                seconds=options.seconds,
                is_warmed_up=not once,
            )
        )
        check_results(rows)
        memory = {str(place.arrangement): _measure_memory(place) for place in places}
        _print_line(f"Constant rate: {rate}/s for {seconds} s")
        fixed_rate = measure_at_rate(places[0], rate=rate, seconds=seconds)
        password_hash = _describe_password_hash(places[0])
    _print_line("Cold starts")
    kinds = (COLD_START_KINDS[0], COLD_START_KINDS[-1]) if once else COLD_START_KINDS
    starts = tuple(measure_cold_starts(directory, postgres, kinds, 1 if once else _STARTS))
    _print_line("Failovers")
    failovers = measure_failovers(directory, 1 if once else _FAILOVERS)
    _print_line("Durable intake")
    intake = measure_gatebell(
        rate=_ONCE_RATE if once else _INTAKE_RATE,
        seconds=_ONCE_SECONDS if once else _INTAKE_SECONDS,
        faults=_ONCE_FAULTS if once else _INTAKE_FAULTS,
    )
    return PublishedFigures(
        moment=read_system_clock(),
        machine=machine,
        busy=busy,
        rounds=options.rounds,
        seconds=options.seconds,
        rows=rows,
        memory=memory,
        password_hash=password_hash,
        fixed_rate=fixed_rate,
        starts=starts,
        failovers=failovers,
        intake=intake,
    )


def _build_counts(options: BenchmarkOptions, rate: float, seconds: float) -> Counts:
    for_wrk = build_counts(
        runs=options.runs, seconds=options.seconds, has_codes=RequestKind.CODE in options.works
    )
    for_rate = build_counts_at_rate(rate, seconds)
    return Counts(
        access_tokens=max(for_wrk.access_tokens, for_rate.access_tokens),
        refresh_tokens=for_wrk.refresh_tokens + for_rate.refresh_tokens,
        codes=for_wrk.codes + for_rate.codes,
        device_codes=1,
    )


def _measure_memory(place: RunningArrangement) -> Sequence[tuple[float, float]]:
    """Return the proportional and the resident set size of each process of the web server."""
    found = list_process_family(place.running.live.pid)
    pids = [each.pid for each in found if "gunicorn" in each.command]
    return [(read_proportional_mib(pid), read_resident_mib(pid)) for pid in pids]


def _describe_password_hash(place: RunningArrangement) -> str:
    """Return the algorithm and the parameters of the password hash."""
    running = place.running
    with database_of(running.live) as session:
        user = session.query(User).filter_by(username=running.owner.username).one()
        return (user.password_hash or "").rpartition("$")[0].rpartition("$")[0].strip("$")


def _convert_to_json(value: object) -> object:
    """Return a JSON value for an object: percentiles of latencies, or all members."""
    if isinstance(value, Latencies):
        percentiles = value.percentiles(50, 95, 99, 99.9, 100)
        return {"sent": value.sent, "failed": value.failed, "percentiles": percentiles}
    return vars(value) if is_dataclass(value) else str(value)


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
