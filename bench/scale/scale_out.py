"""Compares one host with several that share Postgres and a store of counters: `make bench-scale`.

A host is one web process and one worker with a separate directory. wrk keeps the same number of
connections in both arrangements, to one host or split over all hosts, in interleaved rounds.
Additional hosts can only help if cores are idle, so the report shows the load of each core.
`tests/operations/hosts/test_two_hosts.py` shows that two hosts act as one service. Here only
the alert numbers are checked after the load.

    python -m bench.scale.scale_out --rounds 5 --seconds 4 --hosts 2 --pin
"""

import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.arrangements import OTHERS, HostArrangement, HostResult, HostRun
from bench.durable_postgres import start_durable_postgres
from bench.load import CONNECTIONS, find_wrk
from bench.machine import MAX_BUSY_PROCESSORS, MachineDescription, describe_machine, wait_for_calm
from bench.options import parse_positive, parse_request_kinds
from bench.processes import pin_to_core
from bench.samples import CannotMeasureError
from bench.scale.hosts import RunningHosts, run_hosts
from bench.scale.scale_report import ScaleReport, format_scale_json, format_scale_report
from bench.workloads import RequestKind
from domain.core.clock import read_system_clock

_RESULTS_FOLDER = Path(__file__).parents[1] / "results"
_DEFAULT_KINDS = (RequestKind.TOKEN_INFO, RequestKind.INTAKE)
_POSSIBLE_KINDS = (
    RequestKind.TOKEN_INFO,
    RequestKind.USER,
    RequestKind.INTAKE,
    RequestKind.METRICS,
)
_CALM_TIMEOUT_SECONDS = 90
_EXIT_TOO_BUSY = 3
_EXIT_WRONG = 1
_EXIT_STOPPED = 128 + signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class ScaleField:
    """The running hosts and their arrangements: a single host, and all hosts."""

    hosts: RunningHosts
    arrangements: tuple[HostArrangement, ...]
    machine: MachineDescription


@dataclass(frozen=True, kw_only=True)
class ScaleOptions:
    """The options of the command line."""

    works: tuple[RequestKind, ...]
    rounds: int
    seconds: int
    hosts: int
    #: True to pin each host to one core.
    pin: bool
    #: True to report results even if the machine is busy.
    anyway: bool


def read_scale_options(arguments: Sequence[str] | None = None) -> ScaleOptions:
    """Parse the command line."""
    parser = ArgumentParser(
        prog="python -m bench.scale.scale_out",
        description="Compare one host with several hosts that share a database.",
    )
    names = ", ".join(_POSSIBLE_KINDS)
    only = f"comma-separated kinds of requests: {names}"
    parser.add_argument(
        "--only", type=parse_request_kinds, default=_DEFAULT_KINDS, dest="works", help=only
    )
    parser.add_argument("--rounds", type=parse_positive, default=5, help="number of rounds (5)")
    parser.add_argument("--seconds", type=parse_positive, default=4, help="seconds of each run (4)")
    parser.add_argument("--hosts", type=parse_positive, default=2, help="number of hosts (2)")
    parser.add_argument("--pin", action="store_true", help="pin each host to one core")
    parser.add_argument(
        "--anyway", action="store_true", help="measure with a warning if the machine is busy"
    )
    options = ScaleOptions(**vars(parser.parse_args(arguments)))
    if not 2 <= options.hosts <= CONNECTIONS:  # noqa: PLR2004 - one is what they are compared with
        parser.error(f"--hosts: must be from 2 to {CONNECTIONS}")
    if not set(options.works) <= set(_POSSIBLE_KINDS):
        parser.error(f"--only: choose from {names}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 3 if the machine is too busy, 1 if alerts were stored wrongly."""
    # Without a handler, SIGTERM would leave the hosts running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_EXIT_STOPPED))
    options = read_scale_options(arguments)
    find_wrk()
    with _open_field(options) as field:
        busy = wait_for_calm(0 if options.anyway else _CALM_TIMEOUT_SECONDS)
        doubts = (
            [f"Other programs used {busy:.2f} processors before."]
            if busy > MAX_BUSY_PROCESSORS
            else []
        )
        if doubts and not options.anyway:
            sys.stderr.write(f"{doubts[0]} Use --anyway to measure with a warning.\n")
            return _EXIT_TOO_BUSY
        findings = tuple(_measure_arrangements(field.arrangements, options))
        report = _build_report(field, options, findings, (*doubts, *_find_doubts_after(findings)))
    _write_report(report)
    return 0 if report.is_sound else _EXIT_WRONG


@contextmanager
def _open_field(options: ScaleOptions) -> Iterator[ScaleField]:
    with start_durable_postgres() as postgres, TemporaryDirectory(prefix="gatebell-hosts-") as name:
        url = postgres.databases.new_database()
        _print_line(f"Starting {options.hosts} hosts")
        with run_hosts(options.hosts, Path(name), url) as hosts:
            if options.pin:
                _pin_hosts(hosts)
            yield ScaleField(
                hosts=hosts,
                arrangements=tuple(
                    HostArrangement(hosts=hosts, lives=lives, postgres_pid=postgres.pid)
                    for lives in (hosts.lives[:1], hosts.lives)
                ),
                machine=describe_machine(url),
            )


def _pin_hosts(hosts: RunningHosts) -> None:
    for number, live in enumerate(hosts.lives):
        pin_to_core(number % (os.cpu_count() or 1), live.pid)


def _measure_arrangements(
    arrangements: Sequence[HostArrangement], options: ScaleOptions
) -> Iterator[HostResult]:
    for work in options.works:
        _print_line(work.label)
        looks: dict[int, list[HostRun]] = {len(each.lives): [] for each in arrangements}
        for each in arrangements:
            each.measure(work, 1)
        for number in range(options.rounds):
            # The order alternates, so that no arrangement always follows the other.
            for each in arrangements if number % 2 == 0 else reversed(arrangements):
                look = each.measure(work, options.seconds)
                looks[len(each.lives)].append(look)
                _print_line(
                    f"  hosts: {len(each.lives)}{look.rate:>12.1f}/s  p99 {look.p99:>8.1f} ms"
                )
        for count, found in looks.items():
            yield HostResult(work=work, hosts=count, looks=tuple(found))


def _find_doubts_after(findings: Sequence[HostResult]) -> Iterator[str]:
    taken = max(each.spent[OTHERS] for each in findings)
    if taken > MAX_BUSY_PROCESSORS:
        yield f"Other programs used {taken:.2f} cores during the runs."


def _build_report(
    field: ScaleField, options: ScaleOptions, findings: Sequence[HostResult], doubts: Sequence[str]
) -> ScaleReport:
    answered = sum(
        look.right * each.work.alerts
        for each in findings
        if each.work in {RequestKind.INTAKE, RequestKind.METRICS}
        for look in each.looks
    )
    stored, numbers = field.hosts.stored()
    return ScaleReport(
        moment=read_system_clock(),
        machine=field.machine,
        rounds=options.rounds,
        seconds=options.seconds,
        is_pinned=options.pin,
        findings=findings,
        answered=answered,
        stored=stored,
        numbers=numbers,
        doubts=doubts,
    )


def _write_report(report: ScaleReport) -> None:
    _RESULTS_FOLDER.mkdir(exist_ok=True)
    markdown = format_scale_report(report)
    for suffix, text in (("md", markdown), ("json", format_scale_json(report))):
        (_RESULTS_FOLDER / f"scale.{suffix}").write_text(text, encoding="utf-8")
    sys.stdout.write(f"\n{markdown}\nThe results are also in {_RESULTS_FOLDER}.\n")


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotMeasureError as error:
        sys.exit(str(error))
