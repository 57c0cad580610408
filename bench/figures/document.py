"""The document with figures in the form that other projects publish."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from bench.constant_rate import MAX_OPEN_REQUESTS
from bench.durable_intake.intake import DurabilityResult
from bench.durable_intake.intake import format_result as account_as_markdown
from bench.figures.cold_start import ColdStart
from bench.figures.failover import Failover
from bench.figures.fixed_rate import FixedRateResult
from bench.figures.saturation import SaturationResult
from bench.load import CONNECTIONS
from bench.machine import MachineDescription, describe_noise

_INTRODUCTION = """\
# Figures

This page shows requests per second, latencies and processor time in the form that other identity
providers publish. `make bench BENCH_ARGS="--figures"` generates it. [Performance](performance.md)
compares the service with others on the same machine.

{machine}

The service, Postgres and the load generator share the processors. Commits wait for the disk. Rate
limits are raised, because all requests come from one address.
"""
_LOGINS = """
A login is a POST of the sign-in form with the correct password. The response is a redirect with a
new session. Loading the form is not counted. The password hash is `{password_hash}`, the default
of the service (`m` is the memory in KiB, `t` the number of passes, `p` the number of lanes). The
hash takes most of the time of a login, so compare its parameters before you compare login rates.
"""
_SATURATION = """
## Requests per second

wrk used {connections} keep-alive connections in interleaved rounds ({rounds} of {seconds} s). Rates
are medians, with the lowest and the highest rate in brackets.

- *Per vCPU used* is the number of correct responses per second of processor time. It includes all
  processes of the service and of Postgres, but not the load generator.
- *Per vCPU of the machine* is the rate divided by the number of processors. The load generator
  uses these processors too.
- The *Postgres* column shows the share of Postgres in the processor time.

Each connection sends its next request as soon as it receives a response. The latencies are
therefore measured at saturation.
"""
_FIXED_RATE = """
## Constant rate

Two web processes without TLS received a mix of {rate:g} requests per second for {minutes:g}
minutes, in an open loop. Latencies are measured from the time at which each request is due. A slow
response therefore does not hide other slow responses (coordinated omission). Up to {senders}
requests wait for their responses at the same time. On average, the service used {service:.2f} vCPU,
and Postgres used {postgres:.2f}.

"""
_STARTS = """
## Cold start

The table shows the seconds from the command of `make run` to the first correct response. With an
empty database, the service first creates the tables, and the response is the sign-in page. With a
filled database, the response is a token check. *Processor time* includes all processes of the
service until that response, in seconds. Values are medians, with the lowest and the highest value
in brackets.

"""
_FAILOVERS = """
## Failover of Postgres

The primary is killed with SIGKILL, and its standby is promoted immediately. The time that a cluster
manager needs to detect the failure is not included. Replication is asynchronous, so the standby may
lack the latest alerts. The table shows the seconds from the kill to the first correct response to a
request that was sent after it. *Lost* is the number of acknowledged alerts that the standby lacks.

"""
_INTAKE = """
## Durable intake

New alerts are sent at a constant rate, while processes of the service and of Postgres are killed
with SIGKILL. Each alert is sent once. An acknowledged alert must be stored exactly once. The
benchmark can also test [any other service](performance.md#durable-intake-of-any-service).

"""


@dataclass(frozen=True, kw_only=True)
class PublishedFigures:
    """All results of the measurements."""

    moment: datetime
    machine: MachineDescription
    #: Number of busy processors before the run.
    busy: float
    rounds: int
    seconds: int
    rows: Sequence[SaturationResult]
    #: PSS and RSS of the web server's processes after the load in MiB, by arrangement.
    memory: Mapping[str, Sequence[tuple[float, float]]]
    password_hash: str
    fixed_rate: FixedRateResult
    starts: Sequence[ColdStart]
    failovers: Sequence[Failover]
    intake: DurabilityResult


def format_figures(figures: PublishedFigures) -> str:
    """Return the document."""
    machine = figures.machine
    about = (
        f"Measured on {figures.moment:%Y-%m-%d}: {machine.processor}, {machine.cores} vCPU;"
        f" {machine.kernel}, Python {machine.python}, gunicorn {machine.gunicorn}, Postgres"
        f" {machine.postgres} on {machine.storage}. {describe_noise(figures.busy)}"
    )
    parts = [
        _INTRODUCTION.format(machine=about),
        _LOGINS.format(password_hash=figures.password_hash),
        _SATURATION.format(connections=CONNECTIONS, rounds=figures.rounds, seconds=figures.seconds),
        *_format_rates(figures),
        *_format_fixed_rate(figures.fixed_rate),
        *_format_cold_starts(figures.starts),
        *_format_failovers(figures.failovers),
        _INTAKE,
        "\n".join(account_as_markdown(figures.intake)).rstrip("\n") + "\n",
    ]
    return "".join(parts)


def _format_rates(figures: PublishedFigures) -> Iterator[str]:
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
                yield _format_rate(row)
        yield (
            f"\nAfter the load, the processes of the web server used {sizes[0]} MiB (PSS), or"
            f" {sizes[1]} MiB with shared memory counted for each process (RSS).\n"
        )


def _format_rate(row: SaturationResult) -> str:
    low, high = row.rates
    p50, p95, p99 = row.percentiles
    return (
        f"| {row.work.label} | {_format_number(row.rate)} ({_format_number(low)} to "
        f"{_format_number(high)})"
        f" | {_format_number(row.per_used)} | {_format_number(row.per_processor)} | {p50:.1f} | "
        f"{p95:.1f}"
        f" | {p99:.1f} | {row.failures:,} | {row.postgres_share:.0%} |\n"
    )


def _format_fixed_rate(found: FixedRateResult) -> Iterator[str]:
    yield _FIXED_RATE.format(
        rate=found.rate,
        minutes=found.seconds / 60,
        senders=MAX_OPEN_REQUESTS,
        service=found.usage.service / found.seconds,
        postgres=found.usage.postgres / found.seconds,
    )
    yield (
        "| request | sent | per second | p50 ms | p95 ms | p99 ms | p99.9 ms | max ms"
        " | failures |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n"
    )
    for work, latencies in found.latencies.items():
        figures = latencies.percentiles(50, 95, 99, 99.9, 100)
        reasons = ", ".join(f"{why}: {count:,}" for why, count in sorted(latencies.failed.items()))
        cells = (
            work.label,
            f"{latencies.sent:,}",
            _format_number(latencies.sent / found.seconds),
            *(f"{each:,.1f}" for each in figures),
            reasons or "0",
        )
        yield f"| {' | '.join(cells)} |\n"
    latest = max(each.latest for each in found.latencies.values())
    yield f"\nThe maximum delay between due time and sending was {latest:,.0f} ms.\n"


def _format_cold_starts(starts: Sequence[ColdStart]) -> Iterator[str]:
    yield _STARTS
    yield "| database | starts | seconds | processor time |\n|---|--:|--:|--:|\n"
    for each in starts:
        kind = "filled" if each.is_filled else "empty"
        yield (
            f"| {each.database}, {kind} | {len(each.seconds)} | {_format_spread(each.seconds)}"
            f" | {_format_spread(each.computed)} |\n"
        )


def _format_failovers(found: Sequence[Failover]) -> Iterator[str]:
    yield _FAILOVERS
    yield (
        "| failovers | token checks, s | new alerts, s | alerts acknowledged before | lost |\n"
        "|--:|--:|--:|--:|--:|\n"
    )
    times = (
        _format_spread([getattr(each, name) for each in found]) for name in ("tokens", "alerts")
    )
    acknowledged, lost = sum(each.acknowledged for each in found), sum(each.lost for each in found)
    yield f"| {len(found)} | {' | '.join(times)} | {acknowledged:,} | {lost:,} |\n"


def _format_spread(values: Sequence[float]) -> str:
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def _format_number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - two digits
