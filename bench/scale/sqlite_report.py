"""Writes the section on SQLite in docs/evidence/scale.md."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from statistics import median

from bench.scale.large_report import LargeDatabaseResults, format_address, format_growth_table
from bench.scale.walk import WalkedRequest
from bench.scale.writers import REFRESHER_COUNT, SENDER_COUNT, WriterWaits

_HEADING = "\n## SQLite\n"
#: Milliseconds above which a list appears in the table.
_SLOW_LIST_MS = 500.0


@dataclass(frozen=True, kw_only=True)
class SqliteResults:
    """The results of a run."""

    measured: LargeDatabaseResults
    #: Maximum number of query variants for each URL.
    ways: int
    #: Size of the large database file in bytes.
    size: int
    #: Seconds from the start command to the first response, for each start with each database.
    starts: Sequence[Sequence[float]]
    seconds: float
    #: Results by number of web processes.
    writers: Mapping[int, Sequence[WriterWaits]]
    day: str


def find_sqlite_section(document: str) -> str:
    """Return the section of a document, or an empty string if it has none."""
    _, heading, section = document.partition(_HEADING)
    return heading + section


def replace_section(document: str, section: str) -> str:
    """Return the document with this section at the end, in place of an existing one."""
    return document.partition(_HEADING)[0].rstrip("\n") + "\n" + section


def format_section(found: SqliteResults) -> str:
    """Return the section."""
    return "\n".join(
        (
            *_format_head(found),
            *_format_growth(found),
            *_format_lists(found),
            *_format_writers(found),
        )
    )


_HEAD = """
`make bench-large BENCH_ARGS="--sqlite"` fills two SQLite databases with all migrations applied,
measures them with the real server, and generates this section. On {day}, the large database had
{alerts:,} alerts, {deliveries:,} deliveries, the same number of occurrences, {users:,} users and
{tokens:,} tokens, of the same kinds as above. Its size was {size:.1f} GiB, and filling it took
{fill:.0f} s. The small database had {few:,} alerts. The machine had {machine}. {noise} *Analyzed*
is the state after `ANALYZE`, which the service neither runs nor needs.
"""
_GROWTH = """### Growth on SQLite

The table shows the processor time of the web process per request in milliseconds, which includes
SQLite. One client sends the requests over HTTP to one web process for each database, alternating
between the databases ({times} requests of each kind, {pages} of pages). *Rate* is the rate with
{most:,} alerts divided by the rate with {few:,} alerts. The goal for senders and applications is
0.90.
"""
_STARTS = """
The time from `make run` to the first response, with a prepared database, was {few_starts} with
{few:,} alerts and {most_starts} with {most:,} alerts. These are medians of {count} starts, which
alternated between the databases, with the shortest and the longest in brackets.
"""
_LISTS = """### Lists, pages and jobs on SQLite

The benchmark sent {asked:,} requests to {addresses} URLs as above, before the analysis. The maximum
number of variants per URL was {ways}. The table shows the slowest variant of each URL that took
longer than {slow:.0f} ms, and the periodic jobs when nothing is due. The last two columns describe
the slowest statement. *Plan* shows the full scans and sorts of its query plan, or all steps if
there are none.

| request | ms | statement, ms | plan |
|---|--:|--:|---|"""
_WRITERS = """### Writers of SQLite

For {seconds:.0f} s, {senders} clients send new alerts to a project that pages, each as soon as it
receives a response. Another {refreshers} clients refresh tokens and one submits a form, with 50 ms
between requests. Meanwhile, the worker processes the changes, and a process prunes expired rows.
The clients measure the times of requests, so these times include waits for the processors, which
all programs share. The times of the worker and of pruning are waits for the write lock. *Timeouts*
are 503 responses, and waits that ended without the lock.
"""


def _format_head(found: SqliteResults) -> Iterator[str]:
    database = found.measured.database
    yield _HEADING + _HEAD.format(
        **database.sizes.numbers(),
        day=found.day,
        size=found.size / 2**30,
        fill=database.fill_seconds,
        few=found.measured.compared[0],
        machine=found.measured.machine,
        noise=found.measured.noise,
    )


def _format_growth(found: SqliteResults) -> Iterator[str]:
    few, most = found.measured.compared
    times = found.measured.times
    yield _GROWTH.format(times=times, pages=times // 5, few=few, most=most)
    yield from format_growth_table(found.measured)
    few_starts, most_starts = map(_format_spread, found.starts)
    yield _STARTS.lstrip("\n").format(
        few=few,
        most=most,
        few_starts=few_starts,
        most_starts=most_starts,
        count=len(found.starts[0]),
    )


def _format_spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})"


def _format_lists(found: SqliteResults) -> Iterator[str]:
    asked = [each for each in found.measured.before if each.status == HTTPStatus.OK]
    lists = [each for each in asked if not _is_job(each)]
    yield _LISTS.format(
        ways=found.ways,
        asked=len(lists),
        addresses=len({each.rule for each in lists}),
        slow=_SLOW_LIST_MS,
    )
    worst = {each.rule: each for each in sorted(lists, key=lambda one: one.milliseconds)}
    slow = [each for each in worst.values() if each.milliseconds > _SLOW_LIST_MS]
    jobs = [each for each in asked if _is_job(each) and (each.plan or not _is_statement(each))]
    for each in (*sorted(slow, key=lambda one: -one.milliseconds), *jobs):
        mark = "- " if _is_statement(each) else ""
        yield (
            f"| {mark}`{format_address(each.address)}` | {each.milliseconds:,.0f} |"
            f" {each.slowest_ms:,.0f} | {each.plan.replace('|', ' ')} |"
        )
    yield ""


def _is_job(asked: WalkedRequest) -> bool:
    return asked.rule.startswith("job ")


def _is_statement(asked: WalkedRequest) -> bool:
    return asked.rule.endswith(": statement")


def _format_writers(found: SqliteResults) -> Iterator[str]:
    yield _WRITERS.format(seconds=found.seconds, senders=SENDER_COUNT, refreshers=REFRESHER_COUNT)
    yield "| web processes | writer | count | p50, ms | p99, ms | longest, ms | timeouts |"
    yield "|--:|---|--:|--:|--:|--:|--:|"
    for processes, kinds in found.writers.items():
        for each in kinds:
            yield (
                f"| {processes} | {each.kind} | {len(each.taken):,} | {each.quantile(0.5):,.0f} |"
                f" {each.quantile(0.99):,.0f} | {each.quantile(1):,.0f} | {each.busy} |"
            )
    yield ""
