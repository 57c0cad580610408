"""Writes docs/evidence/noisy-neighbors.md."""

from collections.abc import Iterable, Iterator, Sequence

from bench.machine import noise, priorities
from bench.neighbours.findings import GOAL, Finding, Neighbourhood, median, p50, p99
from bench.neighbours.freeze import Stillness
from bench.samples import Sample
from bench.workloads import Work

_INTRODUCTION = """\
# Noisy neighbors

This page shows the latency of ordinary requests while other clients keep the service busy.
`make bench-neighbours` generates it. Four connections check tokens, and four send new alerts. Each
connection pauses for 20 ms after each response. They are measured without and with each neighbor in
turn. Rate limits per address and account are raised, because all load comes from one machine. Each
neighbor therefore causes as much load as many clients.

{machine}

Latencies are in milliseconds. They are medians of the rounds, with the lowest and the highest round
in brackets. *Ratio* is the p99 with the neighbor divided by the p99 without it. The goal is at most
{goal:g}; a higher ratio is **bold**. *Failures* are wrong responses and broken connections. The
first row of each table has no neighbor, and shows how much equal runs differ on this machine.
"""
_LABELS = {Work.TOKEN_INFO: "Token checks", Work.INTAKE: "New alerts"}
_HEAD = ("neighbor", "p50 without", "p50 with", "p99 without", "p99 with", "ratio", "failures")
_ABOUT_ANSWERS = """
The neighbors received these responses in all rounds, by status. A download is `incomplete` if it
had not finished at the end of the round:

"""
_ABOUT_STILLNESS = """
## Frozen database

The database is frozen for some seconds. Meanwhile, four clients send new alerts, four check tokens,
and four request `/healthz`, with a pause of 20 ms after each response. *Served* and *rejected*
count the responses during this time; requests are rejected with 503 and `Retry-After`. *Recovery*
is the time from the return of the database to the first correct response to a later request.
*Failures* are wrong responses and broken connections after the return of the database, until two
seconds after the last recovery.

"""


def as_markdown(found: Neighbourhood) -> str:
    """Return the document."""
    parts = [_INTRODUCTION.format(machine=_machine(found), goal=GOAL)]
    databases = dict.fromkeys(each.database for each in found.findings)
    for database in databases:
        here = [each for each in found.findings if each.database == database]
        parts += _section(database, here)
    if found.stillnesses:
        parts += [_ABOUT_STILLNESS, *_stillness(found.stillnesses)]
    return "".join(parts)


def _machine(found: Neighbourhood) -> str:
    machine, sizes = found.machine, found.sizes
    return (
        f"Measured on {found.moment:%Y-%m-%d}: {machine.processor}, {machine.cores} processors,"
        f" which the service, the database and all clients share; {machine.kernel}, Python"
        f" {machine.python}, Postgres {machine.postgres}. {noise(found.busy)} {priorities()}"
        f" Rounds: {found.rounds} of {found.seconds} s each. Data: {sizes.stored_alerts:,} alerts,"
        f" a repository of {sizes.repository_mib} MiB, and {sizes.people:,} users who are paged by"
        " email."
    )


def _section(database: str, findings: Sequence[Finding]) -> Iterator[str]:
    for work, label in _LABELS.items():
        rows = [each for each in findings if each.work is work]
        if rows:
            yield f"\n## {label}, {database}\n\n"
            yield from _table(_HEAD, map(_row, rows))
    yield _ABOUT_ANSWERS
    for each in findings:
        if each.work is Work.TOKEN_INFO and each.answers:
            told = ", ".join(f"{said}: {count:,}" for said, count in sorted(each.answers.items()))
            yield f"- {each.neighbour}: {told}\n"


def _row(finding: Finding) -> Sequence[str]:
    ratio = f"{finding.ratio:.1f}"
    return (
        finding.neighbour,
        f"{median(finding.alone, p50):.1f}",
        f"{median(finding.beside, p50):.1f}",
        _spread(finding.alone),
        _spread(finding.beside),
        ratio if finding.is_met else f"**{ratio}**",
        f"{finding.errors:,}",
    )


def _spread(samples: Sequence[Sample]) -> str:
    figures = sorted(map(p99, samples))
    return f"{median(samples, p99):.0f} ({figures[0]:.0f} to {figures[-1]:.0f})"


def _stillness(found: Sequence[Stillness]) -> Iterator[str]:
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
    yield from _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    words = 1 if head[0] == "neighbor" else 2
    yield f"| {' | '.join(head)} |\n"
    yield f"|{'|'.join(['---'] * words + ['--:'] * (len(head) - words))}|\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"
