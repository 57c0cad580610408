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

from bench.contenders import EMPTY_VIEW, Field, opened_field
from bench.figures.figures import measure_figures
from bench.load import find_wrk
from bench.machine import BUSY, describe, wait_for_calm
from bench.options import Options, read_options
from bench.reports.chart import chart
from bench.reports.report import Report, as_json, as_markdown
from bench.rounds import Outcome, measure_all, measure_once
from bench.scale.soak import Soak, soak
from bench.targets import verdicts
from domain.core.clock import system_clock

RESULTS = Path(__file__).parent / "results"
#: Maximum spread of the baseline's runs relative to their median, without the outer tenths.
_SPREAD = 0.25
#: Minimum number of runs for which tenths are computed.
_FEW = 4
#: Maximum time in seconds for the machine to become idle after the setup.
_PATIENCE_SECONDS = 90
_TOO_BUSY = 3
_STOPPED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Findings:
    """All results of the measurements."""

    outcomes: Sequence[Outcome]
    soak: Soak | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark, and return the exit status, which is 3 if the machine was too busy.

    If the machine is too busy at the start, nothing is measured. If it becomes too busy later, the
    report contains a warning.
    """
    # Without a handler, SIGTERM would leave a dozen servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_STOPPED))
    options = read_options(arguments)
    find_wrk()
    if options.figures:
        return measure_figures(options)
    if options.once:
        return _try_out(options)
    doubts = _doubts_beforehand(options)
    if doubts and not options.anyway:
        return _refuse(doubts)
    with opened_field(options) as field:
        doubts += _doubts_beforehand(options)
        if doubts and not options.anyway:
            return _refuse(doubts)
        outcomes = tuple(measure_all(field.contenders, options))
        soaked = soak(field.ours, options.soak) if options.soak else None
        doubts += _doubts_afterwards(outcomes)
        report = _report(field, options, Findings(outcomes, soaked), doubts)
    _write(report)
    return _TOO_BUSY if doubts and not options.anyway else 0


def _try_out(options: Options) -> int:
    """Measure everything once without storing a report; return 1 if anything failed."""
    with opened_field(options) as field:
        outcomes = tuple(measure_once(field.contenders, options))
        report = _report(field, options, Findings(outcomes, None), ())
        _texts(report)
    failed = [each for each in outcomes if not any(sample.rate for sample in each.samples)]
    for each in failed:
        reason = each.reason or "no correct response"
        sys.stderr.write(f"{each.work.label}, {each.name}: {reason}\n")
    return 1 if failed else 0


def _doubts_beforehand(options: Options) -> list[str]:
    busy = wait_for_calm(0 if options.anyway else _PATIENCE_SECONDS)
    if busy <= BUSY:
        return []
    return [f"Other programs used {busy:.2f} processors before the run (limit: {BUSY:g})."]


def _doubts_afterwards(outcomes: Sequence[Outcome]) -> list[str]:
    rates = sorted(
        sample.rate for each in outcomes if each.name == EMPTY_VIEW for sample in each.samples
    )
    if not rates:
        return []
    low, high = _outer_tenths(rates)
    spread = (high - low) / statistics.median(rates)
    if spread <= _SPREAD:
        return []
    doubt = (
        f"The rates of the {EMPTY_VIEW}, which should be equal, differ by {spread:.0%}"
        f" (limit: {_SPREAD:.0%})."
    )
    return [doubt]


def _outer_tenths(rates: Sequence[float]) -> tuple[float, float]:
    if len(rates) < _FEW:
        return rates[0], rates[-1]
    tenths = statistics.quantiles(rates, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def _report(field: Field, options: Options, findings: Findings, doubts: Sequence[str]) -> Report:
    found = {(each.work, each.name): each for each in findings.outcomes}
    return Report(
        moment=system_clock(),
        machine=describe(field.postgres_url),
        options=options,
        outcomes=found,
        verdicts=verdicts(found, field.ours, findings.soak),
        soak=findings.soak,
        missing=dict(field.missing),
        doubts=tuple(dict.fromkeys(doubts)),
    )


def _write(report: Report) -> None:
    RESULTS.mkdir(exist_ok=True)
    texts = _texts(report)
    for suffix, text in texts.items():
        (RESULTS / f"comparison.{suffix}").write_text(text, encoding="utf-8")
    sys.stdout.write(f"\n{texts['md']}\nThe results are also in {RESULTS}.\n")


def _texts(report: Report) -> Mapping[str, str]:
    """Return the tables, the figures and the chart by file extension."""
    drawing = chart(report.outcomes, report.options.works)
    return {"md": as_markdown(report), "json": as_json(report), "svg": drawing}


def _refuse(doubts: Sequence[str]) -> int:
    for doubt in doubts:
        sys.stderr.write(f"{doubt}\n")
    sys.stderr.write(
        "Nothing was measured, because the results would not be reliable. Stop other programs, or"
        " use --anyway to measure with a warning.\n"
    )
    return _TOO_BUSY


if __name__ == "__main__":
    sys.exit(main())
