"""The document with figures in the form that other projects publish."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from bench.constant_rate import SENDERS
from bench.durable_intake.intake import Account
from bench.durable_intake.intake import as_markdown as account_as_markdown
from bench.figures.cold_start import ColdStart
from bench.figures.failover import Failover
from bench.figures.fixed_rate import FixedRate
from bench.figures.saturation import Row
from bench.load import CONNECTIONS
from bench.machine import Machine, noise

_INTRODUCTION = """\
# Figures

Requests per second, latencies and processor time in the form that other identity providers
publish. `make bench BENCH_ARGS="--figures"` writes this page. [Performance](performance.md)
compares the service with others on the same machine.

{machine}

Service, Postgres and the load generator share the processors. Commits wait for the disk. Rate
limits are lifted, since all requests come from one address.
"""
_LOGINS = """
A login is a POST of the sign-in form with the right password, answered by a redirect and a new
session; the page with the form is not counted. The password hash is `{password_hash}`, the
default of the service (`m` is the memory in KiB, `t` the number of passes, `p` the number of
lanes). Most of a login is this hash, so its parameters have to be compared first.
"""
_SATURATION = """
## Requests per second

wrk with {connections} connections that are kept alive; interleaved rounds: {rounds} of {seconds} s.
Rates are medians, with the lowest and the highest. *Per vCPU used* is the number of right answers
for each second of processor time that the service with all its programs and Postgres used
together; the load generator is left out. *Per vCPU of the machine* divides the rate by all
processors, which the load generator uses as well. *Postgres* is its share of the processor time
used. Each connection sends its next request after the last answer, so the latencies are those of
a service at its limit.
"""
_FIXED_RATE = """
## Constant rate

A mix of requests to two web processes without TLS, {rate:g} per second for {minutes:g} minutes,
in an open loop: each request has a time at which it is due, and its latency counts from that
time, so a slow answer delays no other request and hides nothing. Up to {senders} requests wait
for their answers at the same time. The service used {service:.2f} vCPU and Postgres
{postgres:.2f} on average.

"""
_STARTS = """
## Cold start

Seconds from the command of `make run` to the first right answer: the sign-in page with an empty
database, whose tables are made first, and a token check with a database that has them. Medians,
and the lowest and the highest; *processor time* is that of all programs of the service until
then.

"""
_FAILOVERS = """
## Failover of Postgres

The primary is killed with SIGKILL, and its standby is promoted at once: the time that a cluster
manager needs to notice the failure comes on top. Replication is asynchronous, so the standby may
lack the last alerts. Seconds from the kill to the first right answer to a request sent after it.

"""
_INTAKE = """
## Durable intake

New alerts at a constant rate, while programs of the service and Postgres are killed with SIGKILL.
Every alert is sent once. An acknowledged alert has to be stored exactly once. [How to repeat
it](performance.md#durable-intake-of-any-service) with any other service.

"""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All results of the measurements."""

    moment: datetime
    machine: Machine
    #: Number of busy processors before the run.
    busy: float
    rounds: int
    seconds: int
    rows: Sequence[Row]
    #: PSS and RSS of the web server's processes after the load in MiB, by arrangement.
    memory: Mapping[str, Sequence[tuple[float, float]]]
    password_hash: str
    fixed_rate: FixedRate
    starts: Sequence[ColdStart]
    failovers: Sequence[Failover]
    intake: Account


def as_markdown(figures: Figures) -> str:
    """Return the document."""
    machine = figures.machine
    about = (
        f"Measured on {figures.moment:%Y-%m-%d}: {machine.processor}, {machine.cores} vCPU;"
        f" {machine.kernel}, Python {machine.python}, gunicorn {machine.gunicorn}, Postgres"
        f" {machine.postgres} on {machine.storage}. {noise(figures.busy)}"
    )
    parts = [
        _INTRODUCTION.format(machine=about),
        _LOGINS.format(password_hash=figures.password_hash),
        _SATURATION.format(connections=CONNECTIONS, rounds=figures.rounds, seconds=figures.seconds),
        *_rates(figures),
        *_fixed_rate(figures.fixed_rate),
        *_cold_starts(figures.starts),
        *_failovers(figures.failovers),
        _INTAKE,
        "\n".join(account_as_markdown(figures.intake)).rstrip("\n") + "\n",
    ]
    return "".join(parts)


def _rates(figures: Figures) -> Iterator[str]:
    for arrangement in dict.fromkeys(row.arrangement for row in figures.rows):
        sizes = [
            " + ".join(f"{size:.0f}" for size in kind)
            for kind in zip(*figures.memory[str(arrangement)], strict=True)
        ]
        words = str(arrangement)
        yield f"\n### {words[0].upper()}{words[1:]}\n\n"
        yield (
            "| request | requests/s | per vCPU used | per vCPU of the machine | p50 ms | p95 ms"
            " | p99 ms | failures | Postgres |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        )
        for row in figures.rows:
            if row.arrangement == arrangement:
                yield _rate(row)
        yield (
            f"\nThe processes of the web server had {sizes[0]} MiB afterwards (PSS), and {sizes[1]}"
            " MiB with what they share counted for each (RSS).\n"
        )


def _rate(row: Row) -> str:
    low, high = row.rates
    p50, p95, p99 = row.percentiles
    return (
        f"| {row.work.label} | {_number(row.rate)} ({_number(low)} to {_number(high)})"
        f" | {_number(row.per_used)} | {_number(row.per_processor)} | {p50:.1f} | {p95:.1f}"
        f" | {p99:.1f} | {row.failures:,} | {row.postgres_share:.0%} |\n"
    )


def _fixed_rate(found: FixedRate) -> Iterator[str]:
    yield _FIXED_RATE.format(
        rate=found.rate,
        minutes=found.seconds / 60,
        senders=SENDERS,
        service=found.usage.service / found.seconds,
        postgres=found.usage.postgres / found.seconds,
    )
    yield (
        "| request | sent | per second | p50 ms | p95 ms | p99 ms | p99.9 ms | longest ms"
        " | failures |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n"
    )
    for work, latencies in found.latencies.items():
        figures = latencies.percentiles(50, 95, 99, 99.9, 100)
        reasons = ", ".join(f"{why}: {count:,}" for why, count in sorted(latencies.failed.items()))
        cells = (
            work.label,
            f"{latencies.sent:,}",
            _number(latencies.sent / found.seconds),
            *(f"{each:,.1f}" for each in figures),
            reasons or "0",
        )
        yield f"| {' | '.join(cells)} |\n"
    latest = max(each.latest for each in found.latencies.values())
    yield f"\nA request was sent at most {latest:,.0f} ms after it was due.\n"


def _cold_starts(starts: Sequence[ColdStart]) -> Iterator[str]:
    yield _STARTS
    yield "| database | starts | seconds | processor time |\n|---|--:|--:|--:|\n"
    for each in starts:
        kind = "filled" if each.is_filled else "empty"
        yield (
            f"| {each.database}, {kind} | {len(each.seconds)} | {_spread(each.seconds)}"
            f" | {_spread(each.computed)} |\n"
        )


def _failovers(found: Sequence[Failover]) -> Iterator[str]:
    yield _FAILOVERS
    yield (
        "| failovers | token checks | new alerts | acknowledged before | missing on the standby |\n"
        "|--:|--:|--:|--:|--:|\n"
    )
    times = (_spread([getattr(each, name) for each in found]) for name in ("tokens", "alerts"))
    acknowledged, lost = sum(each.acknowledged for each in found), sum(each.lost for each in found)
    yield f"| {len(found)} | {' | '.join(times)} | {acknowledged:,} | {lost:,} |\n"


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - two digits
