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
from bench.durable_postgres import RunningPostgres, durable_postgres
from bench.figures.cold_start import KINDS, measure_cold_starts
from bench.figures.document import Figures, as_markdown
from bench.figures.failover import measure_failovers
from bench.figures.fixed_rate import counts_at_rate, measure_at_rate
from bench.figures.saturation import (
    ARRANGEMENTS,
    Place,
    Row,
    check_rows,
    measure_rows,
    running_places,
)
from bench.installs import ROOT
from bench.machine import BUSY, describe, wait_for_calm
from bench.options import Options
from bench.processes import family, proportional_mib, resident_mib
from bench.seed_counts import Counts, counts_for
from bench.workloads import Work
from domain.core.clock import system_clock
from models import User
from tests.support.accounts.people import database_of

_RESULTS = ROOT / "bench" / "results"
_PATIENCE_SECONDS = 90
_TOO_BUSY = 3
_STARTS, _FAILOVERS = 5, 3
_INTAKE_RATE, _INTAKE_SECONDS, _INTAKE_FAULTS = 50, 300, 10
#: Values for a trial run, which only shows that everything works.
_ONCE_RATE, _ONCE_SECONDS, _ONCE_FAULTS = 20, 5, 1


def measure_figures(options: Options) -> int:
    """Measure and write the document; return 1 if alerts were lost, 3 if the machine is busy."""
    is_calm_enough = options.once or options.anyway
    busy = wait_for_calm(0 if is_calm_enough else _PATIENCE_SECONDS)
    if busy > BUSY and not is_calm_enough:
        sys.stderr.write(
            f"Other programs use {busy:.2f} processors. Use --anyway to measure anyway.\n"
        )
        return _TOO_BUSY
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-figures-")))
        postgres = stack.enter_context(durable_postgres())
        figures = _measure(options, directory, postgres, busy)
    text = as_markdown(figures)
    runs = json.dumps(figures, default=_plain, indent=2, ensure_ascii=False)
    sys.stdout.write(f"\n{text}")
    if not options.once:
        _RESULTS.mkdir(exist_ok=True)
        (_RESULTS / "figures.md").write_text(text, encoding="utf-8")
        (_RESULTS / "figures.json").write_text(runs, encoding="utf-8")
    return 0 if figures.intake.is_sound else 1


def _measure(options: Options, directory: Path, postgres: RunningPostgres, busy: float) -> Figures:
    once = options.once
    rate, seconds = (_ONCE_RATE, _ONCE_SECONDS) if once else (options.rate, 60 * options.minutes)
    machine = describe(postgres.databases.new_database())
    # The two arrangements differ both in TLS and in the number of processes.
    arrangements = (ARRANGEMENTS[0], ARRANGEMENTS[-1]) if once else ARRANGEMENTS
    counts = _counts(options, rate, seconds)
    with running_places(arrangements, directory, postgres, counts) as places:
        rows: tuple[Row, ...] = tuple(
            measure_rows(
                places,
                options.works,
                rounds=options.rounds,
                seconds=options.seconds,
                is_warmed_up=not once,
            )
        )
        check_rows(rows)
        memory = {str(place.arrangement): _memory(place) for place in places}
        _say(f"Constant rate: {rate}/s for {seconds} s")
        fixed_rate = measure_at_rate(places[0], rate=rate, seconds=seconds)
        password_hash = _password_hash(places[0])
    _say("Cold starts")
    kinds = (KINDS[0], KINDS[-1]) if once else KINDS
    starts = tuple(measure_cold_starts(directory, postgres, kinds, 1 if once else _STARTS))
    _say("Failovers")
    failovers = measure_failovers(directory, 1 if once else _FAILOVERS)
    _say("Durable intake")
    intake = measure_gatebell(
        rate=_ONCE_RATE if once else _INTAKE_RATE,
        seconds=_ONCE_SECONDS if once else _INTAKE_SECONDS,
        faults=_ONCE_FAULTS if once else _INTAKE_FAULTS,
    )
    return Figures(
        moment=system_clock(),
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


def _counts(options: Options, rate: float, seconds: float) -> Counts:
    for_wrk = counts_for(
        runs=options.runs, seconds=options.seconds, has_codes=Work.CODE in options.works
    )
    for_rate = counts_at_rate(rate, seconds)
    return Counts(
        access_tokens=max(for_wrk.access_tokens, for_rate.access_tokens),
        refresh_tokens=for_wrk.refresh_tokens + for_rate.refresh_tokens,
        codes=for_wrk.codes + for_rate.codes,
        device_codes=1,
    )


def _memory(place: Place) -> Sequence[tuple[float, float]]:
    """Return the proportional and the resident set size of each process of the web server."""
    found = family(place.running.live.pid)
    pids = [each.pid for each in found if "gunicorn" in each.command]
    return [(proportional_mib(pid), resident_mib(pid)) for pid in pids]


def _password_hash(place: Place) -> str:
    """Return the algorithm and the parameters of the password hash."""
    running = place.running
    with database_of(running.live) as session:
        user = session.query(User).filter_by(username=running.owner.username).one()
        return (user.password_hash or "").rpartition("$")[0].rpartition("$")[0].strip("$")


def _plain(value: object) -> object:
    """Return a JSON value for an object: percentiles of latencies, or all members."""
    if isinstance(value, Latencies):
        percentiles = value.percentiles(50, 95, 99, 99.9, 100)
        return {"sent": value.sent, "failed": value.failed, "percentiles": percentiles}
    return vars(value) if is_dataclass(value) else str(value)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
