"""Writes docs/evidence/noisy-neighbors.md."""

from collections.abc import Iterable, Iterator, Sequence

from bench.machine import describe_noise, describe_priorities
from bench.noisy_neighbors.findings import (
    MAX_RATIO,
    NeighborResult,
    NeighborResults,
    compute_median,
    get_p50,
    get_p99,
)
from bench.noisy_neighbors.freeze import FreezeResult
from bench.samples import Sample
from bench.workloads import RequestKind

_INTRODUCTION = """\
# Noisy neighbors

This page shows the latency of ordinary requests while other clients keep the service busy.
`make bench-neighbors` generates it. Four connections check tokens, and four send new alerts. Each
connection pauses for 20 ms after each response. In each row, the other clients are called the
neighbor. The latencies are measured alternately without and with each neighbor. Rate limits per
address and account are raised, because all requests come from one machine. Each neighbor therefore
causes as much load as many clients.

{machine}

Latencies are in milliseconds. They are medians of the rounds, with the lowest and the highest round
in brackets. *Ratio* is the p99 with the neighbor divided by the p99 without it. The goal is at most
{goal:g}; a higher ratio is **bold**. *Failures* are wrong responses and broken connections. The
first row of each table shows how much identical runs without other clients differ on this machine.
"""
_LABELS = {RequestKind.TOKEN_INFO: "Token checks", RequestKind.INTAKE: "New alerts"}
_HEAD = ("neighbor", "p50 without", "p50 with", "p99 without", "p99 with", "ratio", "failures")
_ABOUT_ANSWERS = """
The list shows how many responses the neighbors received in all rounds, by status. A download is
`incomplete` if it had not finished at the end of the round:

"""
_ABOUT_STILLNESS = """
## Frozen database

The database is frozen for several seconds. Meanwhile, four clients send new alerts, four check
tokens, and four request `/healthz`, with a pause of 20 ms after each response.

- *Served* and *rejected* are the numbers of responses during this time. Requests are rejected with
  503 and `Retry-After`.
- *Recovery* is the time from the end of the freeze to the first correct response to a later
  request.
- *Failures* are wrong responses and broken connections from the end of the freeze until two seconds
  after the last recovery.

"""


def format_neighbor_results(found: NeighborResults) -> str:
    """Return the document."""
    parts = [_INTRODUCTION.format(machine=_format_machine(found), goal=MAX_RATIO)]
    databases = dict.fromkeys(each.database for each in found.findings)
    for database in databases:
        here = [each for each in found.findings if each.database == database]
        parts += _format_section(database, here)
    if found.stillnesses:
        parts += [_ABOUT_STILLNESS, *_format_freeze(found.stillnesses)]
    return "".join(parts)


def _format_machine(found: NeighborResults) -> str:
    machine, sizes = found.machine, found.sizes
    return (
        f"Measured on {found.moment:%Y-%m-%d}: {machine.processor}, {machine.cores} processors,"
        f" which the service, the database and all clients share; {machine.kernel}, Python"
        f" {machine.python}, Postgres {machine.postgres}. {describe_noise(found.busy)} "
        f"{describe_priorities()}"
        f" Rounds: {found.rounds} of {found.seconds} s each. Data: {sizes.stored_alerts:,} alerts,"
        f" a repository of {sizes.repository_mib} MiB, and {sizes.people:,} users who are paged by"
        " email."
    )


def _format_section(database: str, findings: Sequence[NeighborResult]) -> Iterator[str]:
    for work, label in _LABELS.items():
        rows = [each for each in findings if each.work is work]
        if rows:
            yield f"\n## {label}, {database}\n\n"
            yield from _format_table(_HEAD, map(_format_row, rows))
    yield _ABOUT_ANSWERS
    for each in findings:
        if each.work is RequestKind.TOKEN_INFO and each.answers:
            told = ", ".join(f"{said}: {count:,}" for said, count in sorted(each.answers.items()))
            yield f"- {each.neighbour}: {told}\n"


def _format_row(finding: NeighborResult) -> Sequence[str]:
    ratio = f"{finding.ratio:.1f}"
    return (
        finding.neighbour,
        f"{compute_median(finding.alone, get_p50):.1f}",
        f"{compute_median(finding.beside, get_p50):.1f}",
        _format_spread(finding.alone),
        _format_spread(finding.beside),
        ratio if finding.is_met else f"**{ratio}**",
        f"{finding.errors:,}",
    )


def _format_spread(samples: Sequence[Sample]) -> str:
    figures = sorted(map(get_p99, samples))
    return f"{compute_median(samples, get_p99):.0f} ({figures[0]:.0f} to {figures[-1]:.0f})"


def _format_freeze(found: Sequence[FreezeResult]) -> Iterator[str]:
    head = ("database", "request", "served", "rejected", "longest wait", "recovery", "failures")
    rows = (
        (
            f"{one.database}, {one.how} for {one.seconds:g} s",
            each.what,
            f"{each.served:,}",
            f"{each.refused:,}",
            f"{each.longest:.2f} s",
            "never" if each.back_after is None else f"{each.back_after:.2f} s",
            f"{each.errors_after:,}",
        )
        for one in found
        for each in one.waits
    )
    yield from _format_table(head, rows)


def _format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    words = 1 if head[0] == "neighbor" else 2
    yield f"| {' | '.join(head)} |\n"
    yield f"|{'|'.join(['---'] * words + ['--:'] * (len(head) - words))}|\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"
