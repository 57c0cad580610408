"""Compares Gatebell with baselines and peers: `make bench`.

The benchmark starts all of them on this machine, with a separate Postgres whose commits are
durable. It loads one after the other with wrk in interleaved rounds, and writes a report, the
figures and a chart to bench/results/. One path in a minute:

    python -m bench.compare --only token-info --rounds 3 --seconds 4 --no-peers

Everything once, to check that it runs, as a test does:

    python -m bench.compare --once --no-peers

Figures in the form that other projects publish, instead of the comparison:

    python -m bench.compare --figures
"""

import signal
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import EMPTY_VIEW, Contenders, open_contenders
from bench.figures.figures import measure_figures
from bench.load import find_wrk
from bench.machine import MAX_BUSY_PROCESSORS, describe_machine, wait_for_calm
from bench.options import BenchmarkOptions, read_options
from bench.reports.chart import draw_chart
from bench.reports.report import ComparisonReport, format_report_json, format_report_markdown
from bench.rounds import Outcome, measure_all, measure_once
from bench.scale.soak import MemorySoak, measure_memory_growth
from bench.targets import compare_with_targets
from domain.core.clock import read_system_clock

RESULTS_FOLDER = Path(__file__).parent / "results"
#: Maximum spread of the baseline's runs relative to their median, without the outer tenths.
_MAX_BASELINE_SPREAD = 0.25
#: Minimum number of runs for which tenths are computed.
_MIN_RUNS_FOR_TENTHS = 4
#: Maximum time in seconds for the machine to become idle after the setup.
_CALM_TIMEOUT_SECONDS = 90
_EXIT_TOO_BUSY = 3
_EXIT_STOPPED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class ComparisonResults:
    """All results of the measurements."""

    outcomes: Sequence[Outcome]
    soak: MemorySoak | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark, and return the exit status, which is 3 if the machine was too busy.

    If the machine is too busy at the start, nothing is measured. If it becomes too busy later, the
    report contains a warning.
    """
    # Without a handler, SIGTERM would leave a dozen servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_EXIT_STOPPED))
    options = read_options(arguments)
    find_wrk()
    if options.figures:
        return measure_figures(options)
    if options.once:
        return _run_once(options)
    doubts = _find_doubts_before(options)
    if doubts and not options.anyway:
        return _report_doubts(doubts)
    with open_contenders(options) as field:
        doubts += _find_doubts_before(options)
        if doubts and not options.anyway:
            return _report_doubts(doubts)
        outcomes = tuple(measure_all(field.contenders, options))
        soaked = measure_memory_growth(field.ours, options.soak) if options.soak else None
        doubts += _find_doubts_after(outcomes)
        report = _build_report(field, options, ComparisonResults(outcomes, soaked), doubts)
    _write_report(report)
    return _EXIT_TOO_BUSY if doubts and not options.anyway else 0


def _run_once(options: BenchmarkOptions) -> int:
    """Measure everything once without storing a report; return 1 if anything failed."""
    with open_contenders(options) as field:
        outcomes = tuple(measure_once(field.contenders, options))
        report = _build_report(field, options, ComparisonResults(outcomes, None), ())
        _format_report(report)
    failed = [each for each in outcomes if not any(sample.rate for sample in each.samples)]
    for each in failed:
        reason = each.reason or "no correct response"
        sys.stderr.write(f"{each.work.label}, {each.name}: {reason}\n")
    return 1 if failed else 0


def _find_doubts_before(options: BenchmarkOptions) -> list[str]:
    busy = wait_for_calm(0 if options.anyway else _CALM_TIMEOUT_SECONDS)
    if busy <= MAX_BUSY_PROCESSORS:
        return []
    limit = f"{MAX_BUSY_PROCESSORS:g}"
    return [f"Other programs used {busy:.2f} processors before the run (limit: {limit})."]


def _find_doubts_after(outcomes: Sequence[Outcome]) -> list[str]:
    rates = sorted(
        sample.rate for each in outcomes if each.name == EMPTY_VIEW for sample in each.samples
    )
    if not rates:
        return []
    low, high = _compute_outer_tenths(rates)
    spread = (high - low) / statistics.median(rates)
    if spread <= _MAX_BASELINE_SPREAD:
        return []
    doubt = (
        f"The rates of the {EMPTY_VIEW}, which should be equal, differ by {spread:.0%}"
        f" (limit: {_MAX_BASELINE_SPREAD:.0%})."
    )
    return [doubt]


def _compute_outer_tenths(rates: Sequence[float]) -> tuple[float, float]:
    if len(rates) < _MIN_RUNS_FOR_TENTHS:
        return rates[0], rates[-1]
    tenths = statistics.quantiles(rates, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def _build_report(
    field: Contenders, options: BenchmarkOptions, findings: ComparisonResults, doubts: Sequence[str]
) -> ComparisonReport:
    found = {(each.work, each.name): each for each in findings.outcomes}
    return ComparisonReport(
        moment=read_system_clock(),
        machine=describe_machine(field.postgres_url),
        options=options,
        outcomes=found,
        verdicts=compare_with_targets(found, field.ours, findings.soak),
        soak=findings.soak,
        missing=dict(field.missing),
        doubts=tuple(dict.fromkeys(doubts)),
    )


def _write_report(report: ComparisonReport) -> None:
    RESULTS_FOLDER.mkdir(exist_ok=True)
    texts = _format_report(report)
    for suffix, text in texts.items():
        (RESULTS_FOLDER / f"comparison.{suffix}").write_text(text, encoding="utf-8")
    sys.stdout.write(f"\n{texts['md']}\nThe results are also in {RESULTS_FOLDER}.\n")


def _format_report(report: ComparisonReport) -> Mapping[str, str]:
    """Return the tables, the figures and the chart by file extension."""
    drawing = draw_chart(report.outcomes, report.options.works)
    return {
        "md": format_report_markdown(report),
        "json": format_report_json(report),
        "svg": drawing,
    }


def _report_doubts(doubts: Sequence[str]) -> int:
    for doubt in doubts:
        sys.stderr.write(f"{doubt}\n")
    sys.stderr.write(
        "Nothing was measured, because the results would not be reliable. Stop other programs, or"
        " use --anyway to measure with a warning.\n"
    )
    return _EXIT_TOO_BUSY


if __name__ == "__main__":
    sys.exit(main())
