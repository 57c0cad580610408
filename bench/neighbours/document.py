"""Writes docs/evidence/noisy-neighbors.md."""

from collections.abc import Iterable, Iterator, Sequence

from bench.machine import noise, priorities
from bench.neighbours.findings import GOAL, Finding, Neighbourhood, median, p50, p99
from bench.neighbours.freeze import Stillness
from bench.samples import Sample
from bench.workloads import Work

_INTRODUCTION = """\
# Neighbours

What ordinary requests take while others keep the service busy. `make bench-neighbours` writes this
page: eight connections, each with a pause of 20 ms after each answer, check tokens (four) and send
new alerts (the other four), alone and beside each neighbour in turn. Limits per address and account
are lifted, because all load comes from one machine: the neighbours here are as bad as if there were
many of them.

{machine}

Times are in milliseconds: medians of the rounds, and in brackets the lowest and the highest round.
*p99* is what one request of a hundred exceeds; *ratio* is its median beside the neighbour divided
by that alone. The goal is at most {goal:g}; a ratio above it is **bold**. *Errors* are answers
other than the right one, and connections that broke. The first row of each table has no neighbour:
it shows how far two equal runs lie apart on this machine.
"""
_LABELS = {Work.TOKEN_INFO: "Token info", Work.INTAKE: "A new alert"}
_HEAD = ("neighbour", "p50 alone", "p50 beside", "p99 alone", "p99 beside", "ratio", "errors")
_ABOUT_ANSWERS = """
What the neighbours themselves were answered in all rounds, by status (`left` is a download
that did not come to its end before the round did):

"""
_ABOUT_STILLNESS = """
## A database that stands still

Four clients each send alerts, check tokens and request `/healthz`, twenty milliseconds after each
answer. *Served* and *refused* are answers that came meanwhile; a refusal is 503 with `Retry-After`.
*Back* is the time from the return of the database to the first right answer to a request that was
sent afterwards, and *errors* are wrong answers after that moment, in two seconds.

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
        f" which service, database and all clients share; {machine.kernel}, Python"
        f" {machine.python}, Postgres {machine.postgres}. {noise(found.busy)} {priorities()}"
        f" {found.rounds} rounds of {found.seconds} s each;"
        f" {sizes.stored_alerts:,} alerts stored, a repository of {sizes.repository_mib} MiB,"
        f" {sizes.people:,} people who are paged by e-mail."
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
    head = ("database", "asked for", "served", "refused", "longest wait", "back", "errors")
    rows = (
        (
            f"{one.database}: {one.how} for {one.seconds:g} s",
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
    words = 1 if head[0] == "neighbour" else 2
    yield f"| {' | '.join(head)} |\n"
    yield f"|{'|'.join(['---'] * words + ['--:'] * (len(head) - words))}|\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"
