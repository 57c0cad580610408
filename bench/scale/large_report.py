"""Writes docs/evidence/scale.md from the measurements of a large database."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import LiteralString

from bench.scale.large import LargeDatabase, connect_to_database
from bench.scale.large_tables import TableRowCounts
from bench.scale.walk import MAX_VARIANTS, MIN_LARGE_TABLE_ROWS, WalkedRequest

_SIZES = """
SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid), c.reltuples::bigint
FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
  AND c.reltuples > %s ORDER BY pg_total_relation_size(c.oid) DESC
"""
_INDEXES = """
SELECT c.relname, i.relname, pg_relation_size(i.oid), c.reltuples::bigint, s.idx_scan, x.indisunique
FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
JOIN pg_class AS c ON c.oid = x.indrelid
JOIN pg_stat_user_indexes AS s ON s.indexrelid = i.oid
WHERE c.reltuples > %s ORDER BY pg_relation_size(i.oid) DESC
"""
#: Maximum time of a list page in milliseconds.
GOAL_MS = 100.0
_NONE = "-"
#: Number of alerts above which a database is only analyzed, since vacuuming takes longer than
#: filling.
_VACUUMED = 3_000_000
#: Statuses of counted responses: missing pages do not count, but timeouts do.
_COUNTED = (HTTPStatus.OK, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, kw_only=True)
class LargeDatabaseResults:
    """The results of a run."""

    database: LargeDatabase
    #: Results of the page walk and the jobs, before and after the database was analyzed.
    before: Sequence[WalkedRequest]
    after: Sequence[WalkedRequest]
    #: Numbers of alerts in the compared databases, and medians by kind of request.
    compared: Sequence[int]
    growth_before: Mapping[str, Sequence[float]]
    growth_after: Mapping[str, Sequence[float]]
    #: Number of compared requests.
    times: int
    #: Description of the machine, and its load before the run.
    machine: str
    noise: str


def build_document(measured: LargeDatabaseResults) -> str:
    """Return the text of docs/evidence/scale.md."""
    return "\n".join(
        (
            *_format_head(measured),
            *_format_growth(measured),
            *_format_lists(measured),
            *_format_jobs(measured),
            *_format_table_sizes(measured.database),
            *_format_index_sizes(measured.database),
        )
    )


_HEAD = """# Scale

This page shows how lists, lookups and periodic jobs perform in a large database. `make bench-large`
fills a separate Postgres and generates this page. With `BENCH_ARGS="--alerts 100000"`, it takes
minutes. [Capacity](../capacity.md#many-millions) describes the consequences of the results.

The database of this run has {alerts:,} alerts, {deliveries:,} deliveries, the same number of
occurrences, {users:,} users, {tokens:,} tokens and {projects:,} projects. One project has most of
the alerts, one pages users, and the others have a few alerts each. Filling Postgres 18 took
{fill:.0f} s, and creating its indexes took {index:.0f} s, on {machine}. {noise}

*Never analyzed* is a database without statistics, as after a restore. Postgres then knows the
number of rows, but not the distribution of their values. *Analyzed* is the same database after
`{analyzing}`.
"""
_GROWTH = """## Growth

The table shows the median time of {times} requests in milliseconds. One client sends them over HTTP
to one web process for each database, alternating between the databases. *Rate* is the rate with
{most:,} alerts divided by the rate with {few:,} alerts. The goal is 0.90.
"""
_LISTS = """## Lists and pages

The benchmark requests every URL of the service with GET, as an administrator who owns the large
project. It uses each parameter that the API description or the page itself offers: {asked:,}
requests to {addresses} URLs. The service runs in the process of the benchmark, so the times include
both the service and Postgres. Each URL is requested in at most
{ways} variants, without further variants after a minute. Postgres also cancels statements after
a minute.

{quick} URLs took at most {goal:.0f} ms and read at most {rows:,} rows in all variants. The table
shows the slowest variant of all other URLs. The last two columns describe the slowest statement.

| request | analyzed, ms | never analyzed, ms | rows read | statement, ms | scans and sorts |
|---|--:|--:|--:|--:|---|"""
_JOBS = """## Periodic jobs

The table shows one run of each job when no work is due, and the job's slow statements. The jobs run
every minute or every ten minutes.

| job | analyzed, ms | never analyzed, ms | rows read | scans and sorts |
|---|--:|--:|--:|---|"""
_TABLES = """## Sizes

The table shows the sizes after a bulk load. [Capacity](../capacity.md#disk) lists the sizes of rows
that are stored one by one.

| table | rows | MiB per million rows | with indexes |
|---|--:|--:|--:|"""
_UNUSED = """
No request of this run used the following non-unique indexes. Indexes of foreign keys are needed for
deletions, and the other indexes are needed for jobs that had no work during the run:
"""


def build_analyze_statement(sizes: TableRowCounts) -> LiteralString:
    """Return the statement that analyzes a database."""
    return "ANALYZE" if sizes.alerts > _VACUUMED else "VACUUM (ANALYZE)"


def _format_head(measured: LargeDatabaseResults) -> Iterator[str]:
    sizes = measured.database.sizes
    yield _HEAD.format(
        **sizes.numbers(),
        projects=sizes.small + 2,
        fill=measured.database.fill_seconds,
        index=measured.database.index_seconds,
        machine=measured.machine,
        noise=measured.noise,
        analyzing=build_analyze_statement(sizes),
    )


def _format_growth(measured: LargeDatabaseResults) -> Iterator[str]:
    if measured.growth_before or measured.growth_after:
        yield _GROWTH.format(
            times=measured.times, few=measured.compared[0], most=measured.compared[-1]
        )
        yield from format_growth_table(measured)


def format_growth_table(measured: LargeDatabaseResults) -> Iterator[str]:
    """Yield the lines of the comparison table."""
    found = {"never analyzed": measured.growth_before, "analyzed": measured.growth_after}
    numbers = " | ".join(f"{each:,}" for each in measured.compared)
    heads = [f"{numbers}, {name} | rate" for name, medians in found.items() if medians]
    yield f"| request | {' | '.join(heads)} |"
    yield "|---|" + "--:|" * ((len(measured.compared) + 1) * len(heads))
    for kind in measured.growth_before or measured.growth_after:
        cells = [kind]
        for medians in filter(None, found.values()):
            cells += [*(f"{each:.1f}" for each in medians[kind])]
            cells.append(f"{medians[kind][0] / medians[kind][-1]:.2f}")
        yield f"| {' | '.join(cells)} |"
    yield ""


def _format_lists(measured: LargeDatabaseResults) -> Iterator[str]:
    before, after = _group_by_rule(measured.before), _group_by_rule(measured.after)
    looked_at = after or before
    worst = {
        rule: max(found, key=lambda each: each.milliseconds) for rule, found in looked_at.items()
    }
    slow = [
        each
        for each in worst.values()
        if each.milliseconds > GOAL_MS or each.rows > MIN_LARGE_TABLE_ROWS or each.whole
    ]
    yield _LISTS.format(
        asked=sum(map(len, looked_at.values())),
        addresses=len(worst),
        quick=len(worst) - len(slow),
        goal=GOAL_MS,
        rows=MIN_LARGE_TABLE_ROWS,
        ways=MAX_VARIANTS,
    )
    for each in sorted(slow, key=lambda one: -one.milliseconds):
        times = (_format_time(each, after), _format_time(each, before))
        yield (
            f"| `{format_address(each.address)}` | {' | '.join(times)} | {each.rows:,} |"
            f" {each.slowest_ms:,.0f} | {_strip_code_format(each.plan)} |"
        )
    yield ""


def _format_time(asked: WalkedRequest, found: Mapping[str, Sequence[WalkedRequest]]) -> str:
    for each in found.get(asked.rule, ()):
        if each.address == asked.address:
            failed = "" if each.status == HTTPStatus.OK else f" ({each.status})"
            return f"{each.milliseconds:,.0f}{failed}"
    return _NONE


def _format_jobs(measured: LargeDatabaseResults) -> Iterator[str]:
    yield _JOBS
    before = {each.address: each for each in measured.before if each.rule.startswith("job ")}
    for each in measured.after or measured.before:
        if each.rule.startswith("job "):
            # Two shortened statements may look the same.
            analyzed = f"{each.milliseconds:,.0f}" if measured.after else _NONE
            same = before.get(each.address)
            never = f"{same.milliseconds:,.0f}" if same else _NONE
            named = (
                each.address
                if "statement" not in each.rule
                else f"- `{format_address(each.address)}`"
            )
            yield (
                f"| {named} | {analyzed} | {never} | {each.rows:,} | "
                f"{_strip_code_format(each.plan)} |"
            )
    yield ""


def _format_table_sizes(database: LargeDatabase) -> Iterator[str]:
    yield _TABLES
    with connect_to_database(database.url) as connection:
        for name, table, indexes, rows in connection.execute(
            _SIZES, (MIN_LARGE_TABLE_ROWS,)
        ).fetchall():
            yield (
                f"| {name} | {rows:,} | {table / rows * 1e6 / 2**20:,.0f} |"
                f" {(table + indexes) / rows * 1e6 / 2**20:,.0f} |"
            )
    yield ""


def _format_index_sizes(database: LargeDatabase) -> Iterator[str]:
    yield from (
        "| index | MiB per million rows of its table | scans in this run |",
        "|---|--:|--:|",
    )
    with connect_to_database(database.url) as connection:
        found = connection.execute(_INDEXES, (MIN_LARGE_TABLE_ROWS,)).fetchall()
    unused = []
    for _, name, size, rows, scans, is_unique in found:
        if scans == 0 and not is_unique:
            unused.append(name)
        if size > 2**20:
            yield f"| {name} | {size / rows * 1e6 / 2**20:,.1f} | {scans:,} |"
    yield _UNUSED
    yield ", ".join(sorted(unused)) + ".\n"


def _group_by_rule(asked: Sequence[WalkedRequest]) -> Mapping[str, list[WalkedRequest]]:
    found: dict[str, list[WalkedRequest]] = defaultdict(list)
    for each in asked:
        if each.status in _COUNTED and not each.rule.startswith("job "):
            found[each.rule].append(each)
    return found


def _strip_code_format(plan: str) -> str:
    """Return a plan without code formatting, since its names appear in no file."""
    return plan.replace("`", "")


def format_address(address: str) -> str:
    """Return a URL or a statement as a cell of a table."""
    short = address if len(address) <= 110 else f"{address[:109]}…"  # noqa: PLR2004 - of a cell
    return short.replace("|", "\\|")
