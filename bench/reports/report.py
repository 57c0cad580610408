"""Reports of the figures as Markdown and JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from bench.contenders import EMPTY_VIEW, ON_POSTGRES
from bench.gatebell import THREADS, WORKERS
from bench.load import CONNECTIONS
from bench.machine import MachineDescription
from bench.options import BenchmarkOptions
from bench.rounds import Outcome, compute_ratio
from bench.scale.soak import MemorySoak
from bench.targets import Outcomes, Verdict


@dataclass(frozen=True, kw_only=True)
class ComparisonReport:
    """The content of the report."""

    moment: datetime
    machine: MachineDescription
    options: BenchmarkOptions
    outcomes: Outcomes
    verdicts: Sequence[Verdict]
    soak: MemorySoak | None
    #: Reasons why contenders could not be measured, by name.
    missing: dict[str, str]
    #: Reasons not to trust the results. Empty if there are none.
    doubts: Sequence[str]


def format_report_markdown(report: ComparisonReport) -> str:
    """Return the report as Markdown."""
    return (
        "\n".join((*_format_head(report), *_format_targets(report), *_format_request_kinds(report)))
        + "\n"
    )


def _format_head(report: ComparisonReport) -> Iterator[str]:
    options = report.options
    yield "# Gatebell compared with baselines and peers"
    yield ""
    for doubt in report.doubts:
        yield f"**Not reliable:** {doubt}"
        yield ""
    yield (
        f"{report.moment:%Y-%m-%d %H:%M} UTC. {options.rounds} interleaved rounds of"
        f" {options.seconds} s over {CONNECTIONS} keep-alive connections. Rates and latencies are"
        " medians. Ratios are medians of the ratios within a round, with the lowest and the highest"
        f" ratio in brackets. Each server has {WORKERS} processes, and the processes of peers in"
        f" Python have {THREADS} threads. All servers and the load generator share one machine, so"
        " ratios are more reliable than rates."
    )
    yield ""
    for name, text in report.machine.lines():
        yield f"- {name}: {text}"
    for name, reason in report.missing.items():
        yield f"- Could not be measured: {name}. {_format_in_line(reason)}"
    yield ""
    yield "![Requests per second](comparison.svg)"
    yield ""


def _format_targets(report: ComparisonReport) -> Iterator[str]:
    yield "## Targets"
    yield ""
    yield "| target | measured | result |"
    yield "|---|---|---|"
    for verdict in report.verdicts:
        if verdict.measured:
            yield f"| {verdict.target} | {verdict.measured} | {verdict.word} |"
    left = [verdict for verdict in report.verdicts if not verdict.measured]
    yield ""
    if left:
        yield f"Not measured: {'; '.join(verdict.target for verdict in left)}."
        yield ""


def _format_request_kinds(report: ComparisonReport) -> Iterator[str]:
    for work in report.options.works:
        yield f"## {work.label}"
        yield ""
        yield (
            "| server | requests/s | ratio to the empty view | ratio of Gatebell to it | p50 ms"
            " | p95 ms | p99 ms | failures | responses | memory MiB |"
        )
        yield "|---|--:|--:|--:|--:|--:|--:|--:|---|---|"
        for (of_work, _name), outcome in report.outcomes.items():
            if of_work is work:
                yield _format_row(outcome, report.outcomes)
        yield ""
        if work.alerts > 1:
            yield f"Each request contains {work.alerts:,} alerts."
            yield ""


def _format_row(outcome: Outcome, outcomes: Outcomes) -> str:
    if not outcome.samples:
        return f"| {outcome.name} | {_format_in_line(outcome.reason)} |" + " |" * 8
    cells = (
        outcome.name,
        f"{outcome.rate:,.1f}" if outcome.rate < 100 else f"{outcome.rate:,.0f}",  # noqa: PLR2004 - two digits
        _format_ratio(outcome, outcomes.get((outcome.work, EMPTY_VIEW))),
        _format_ratio(outcomes.get((outcome.work, ON_POSTGRES)), outcome),
        f"{outcome.p50:.1f}",
        f"{outcome.p95:.1f}",
        f"{outcome.p99:.1f}",
        str(outcome.errors),
        _format_statuses(outcome),
        f"{outcome.memory_before:.0f} → {outcome.memory_after:.0f}" if outcome.memory_after else "",
    )
    return f"| {' | '.join(cells)} |"


def _format_statuses(outcome: Outcome) -> str:
    seen = [f"{status}: {times:,}" for status, times in outcome.statuses.items() if times]
    return ", ".join(
        (*seen, *([f"problem: {_format_in_line(outcome.reason)}"] if outcome.reason else []))
    )


def _format_ratio(one: Outcome | None, other: Outcome | None) -> str:
    ratio = compute_ratio(one, other)
    return "" if ratio is None else str(ratio)


def _format_in_line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def format_report_json(report: ComparisonReport) -> str:
    """Return the report as JSON, including every single run."""
    return json.dumps(
        {
            "at": report.moment.isoformat(),
            "machine": asdict(report.machine),
            "rounds": report.options.rounds,
            "seconds": report.options.seconds,
            "connections": CONNECTIONS,
            "doubts": list(report.doubts),
            "missing": report.missing,
            "targets": [{**asdict(each), "verdict": each.word} for each in report.verdicts],
            "soak": asdict(report.soak) if report.soak else None,
            "outcomes": [_convert_to_dict(each) for each in report.outcomes.values()],
        },
        indent=2,
        ensure_ascii=False,
    )


def _convert_to_dict(outcome: Outcome) -> dict[str, object]:
    medians = (
        {name: getattr(outcome, name) for name in ("rate", "p50", "p95", "p99", "errors")}
        if outcome.samples
        else {}
    )
    return {**asdict(outcome), "label": outcome.work.label, **medians}
