"""The report on several hosts as Markdown and JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from bench.arrangements import LOAD, OTHERS, POSTGRES, WEB, WORKERS, HostResult
from bench.load import CONNECTIONS
from bench.machine import MachineDescription
from bench.rounds import TIMES_SIGN
from bench.workloads import RequestKind

#: Number of idle cores below which additional hosts cannot help.
_MIN_IDLE_CORES = 0.25
_PROGRAM_NAMES = (WEB, WORKERS, POSTGRES, LOAD, OTHERS)


@dataclass(frozen=True, kw_only=True)
class ScaleReport:
    """The content of the report."""

    moment: datetime
    machine: MachineDescription
    rounds: int
    seconds: int
    is_pinned: bool
    findings: Sequence[HostResult]
    #: Number of accepted alerts, of stored alerts, and of distinct alert numbers.
    answered: int
    stored: int
    numbers: int
    #: Reasons not to trust the results. Empty if there are none.
    doubts: Sequence[str]

    @property
    def is_sound(self) -> bool:
        """True if all accepted alerts are stored, each with a unique number."""
        return self.answered <= self.stored == self.numbers


def format_scale_report(report: ScaleReport) -> str:
    """Return the report as Markdown."""
    lines = [*_format_head(report)]
    for work in dict.fromkeys(each.work for each in report.findings):
        lines += _format_request_kind(work, [each for each in report.findings if each.work is work])
    return "\n".join((*lines, *_format_numbers(report))) + "\n"


def _format_head(report: ScaleReport) -> Iterator[str]:
    yield "# One host compared with several"
    yield ""
    for doubt in report.doubts:
        yield f"**Not reliable:** {doubt}"
        yield ""
    pinned = " Each host was pinned to one core." if report.is_pinned else ""
    yield (
        f"{report.moment:%Y-%m-%d %H:%M} UTC. {report.rounds} interleaved rounds of"
        f" {report.seconds} s; values are medians. A host is one web process and one worker. The"
        f" hosts share Postgres and a store of counters. All {CONNECTIONS} connections lead to one"
        f" host, or are distributed evenly.{pinned} All hosts and the load generator share one"
        " machine."
    )
    yield ""
    for name, text in report.machine.lines():
        yield f"- {name}: {text}"
    yield ""


def _format_request_kind(work: RequestKind, findings: Sequence[HostResult]) -> Iterator[str]:
    alone = findings[0]
    yield f"## {work.label}"
    yield ""
    programs = " | ".join(_PROGRAM_NAMES)
    yield f"| hosts | requests/s | ratio | p99 ms | failures | load of each core | {programs} |"
    yield "|--:|--:|--:|--:|--:|---|" + "--:|" * len(_PROGRAM_NAMES)
    for each in findings:
        cells = (
            str(each.hosts),
            f"{each.rate:,.0f}",
            f"{each.rate / alone.rate:.2f} {TIMES_SIGN}",
            f"{each.p99:.1f}",
            str(each.errors),
            ", ".join(f"{share:.0%}" for share in each.cores),
            *(f"{each.spent[name]:.2f}" for name in _PROGRAM_NAMES),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield (
        f"The last {len(_PROGRAM_NAMES)} columns show how many cores were used. "
        f"{describe_headroom(alone)}"
    )
    yield ""


def describe_headroom(alone: HostResult) -> str:
    """Return a sentence on the headroom of the machine beyond the load of one host."""
    cores, busy = len(alone.cores), sum(alone.cores)
    ours, idle = busy - alone.spent[OTHERS], max(0.0, cores - busy)
    most = (ours + idle) / max(ours, 0.01)
    room = (
        f"With one host, {busy:.2f} of {cores} cores were busy, {ours:.2f} of them with this load."
        f" On this machine, any number of hosts can therefore reach at most {most:.2f} "
        f"{TIMES_SIGN} the"
        " rate of one host."
    )
    if idle >= _MIN_IDLE_CORES:
        return room
    return f"{room} No core was idle, so the machine limits the ratio, and not the service."


def _format_numbers(report: ScaleReport) -> Iterator[str]:
    yield "## Stored alerts"
    yield ""
    verdict = "This is correct." if report.is_sound else "**This is wrong.**"
    yield (
        f"{report.answered:,} alerts were acknowledged. {report.stored:,} are stored, with"
        f" {report.numbers:,} different numbers. {verdict} Alerts of the warm-up, and alerts that"
        " were in progress when a run ended, are stored but not counted as acknowledged."
    )


def format_scale_json(report: ScaleReport) -> str:
    """Return the report as JSON, including every single run."""
    return json.dumps(
        {
            **asdict(report),
            "moment": report.moment.isoformat(),
            "is_sound": report.is_sound,
            "findings": [
                {**asdict(each), "rate": each.rate, "p99": each.p99, "cores": each.cores}
                for each in report.findings
            ],
        },
        indent=2,
        ensure_ascii=False,
    )
