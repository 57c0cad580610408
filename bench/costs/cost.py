"""Costs of a request, a connection and a stored object, for docs/capacity.md: `make bench-cost`.

The benchmark starts a separate Postgres, prints tables, and writes them to bench/results/. Sizes
and connections are exact even on a busy machine, and processor times nearly so. Parts:

    python -m bench.costs.cost --only requests --requests 200
    python -m bench.costs.cost --only storage --things 100000
"""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.alert_lists import print_progress
from bench.costs.connection_counts import ConnectionCount, measure_connection_counts
from bench.costs.request_costs import ProcessSizes, RequestCost, measure_request_costs
from bench.costs.storage_costs import StorageCost, compute_body_size, measure_storage_costs
from bench.durable_postgres import RunningPostgres, start_durable_postgres
from bench.machine import MachineDescription, describe_machine
from bench.options import parse_positive
from bench.samples import CannotMeasureError
from domain.core.clock import read_system_clock

_RESULTS_FOLDER = Path(__file__).parents[1] / "results"
_PARTS = ("requests", "connections", "storage")
#: Values of DATABASE_POOL_SIZE for which connections are counted.
_POOL_SIZES = (4, 8)
_MILLION = 1_000_000
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class CostResults:
    """All results of the measurements."""

    machine: MachineDescription
    requests: Sequence[RequestCost] = ()
    sizes: ProcessSizes | None = None
    connections: Sequence[ConnectionCount] = ()
    storage: Sequence[StorageCost] = ()


def main() -> None:
    """Measure the selected parts and print the results."""
    parser = ArgumentParser(
        prog="python -m bench.costs.cost",
        description="Measure the costs of requests, connections and stored objects.",
    )
    only = f"comma-separated parts: {', '.join(_PARTS)}"
    parser.add_argument("--only", type=_parse_parts, default=_PARTS, help=only)
    parser.add_argument(
        "--requests", type=parse_positive, default=500, help="number of requests of each kind (500)"
    )
    parser.add_argument(
        "--things",
        type=parse_positive,
        default=20_000,
        help="number of objects of each kind (20000)",
    )
    given = parser.parse_args()
    with start_durable_postgres() as postgres, TemporaryDirectory(prefix="gatebell-cost-") as name:
        costs = _measure(given.only, (given.requests, given.things), postgres, Path(name))
    markdown = "\n".join(
        (
            *_format_head(costs),
            *_format_requests(costs),
            *_format_connections(costs),
            *_format_storage(costs),
        )
    )
    _RESULTS_FOLDER.mkdir(exist_ok=True)
    (_RESULTS_FOLDER / "cost.md").write_text(f"{markdown}\n", encoding="utf-8")
    figures = json.dumps(asdict(costs), indent=2, ensure_ascii=False)
    (_RESULTS_FOLDER / "cost.json").write_text(figures, encoding="utf-8")
    print_progress(f"\n{markdown}\nThe results are also in {_RESULTS_FOLDER}.")


def _parse_parts(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(","))
    if not set(parts) <= set(_PARTS):
        raise ArgumentTypeError(f"choose from {', '.join(_PARTS)}")
    return parts


def _measure(
    parts: Sequence[str], counts: tuple[int, int], postgres: RunningPostgres, directory: Path
) -> CostResults:
    databases = postgres.databases
    costs = CostResults(machine=describe_machine(databases.new_database()))
    if "requests" in parts:
        print_progress("Requests")
        requests, sizes = measure_request_costs(counts[0], directory, postgres)
        costs = replace(costs, requests=requests, sizes=sizes)
    if "connections" in parts:
        print_progress("Connections")
        urls = [databases.new_database() for _ in _POOL_SIZES]
        costs = replace(costs, connections=measure_connection_counts(_POOL_SIZES, directory, urls))
    if "storage" in parts:
        print_progress("Storage")
        stored = measure_storage_costs(counts[1], directory, databases.new_database())
        costs = replace(costs, storage=stored)
    return costs


def _format_head(costs: CostResults) -> Iterator[str]:
    yield "# Costs"
    yield ""
    yield f"{read_system_clock():%Y-%m-%d %H:%M} UTC."
    yield ""
    for name, text in costs.machine.lines():
        yield f"- {name}: {text}"
    yield ""


def _format_requests(costs: CostResults) -> Iterator[str]:
    if not costs.requests or costs.sizes is None:
        return
    yield "## Requests"
    yield ""
    yield (
        "Processor time in milliseconds. The requests were sent one after the other over one"
        " connection."
    )
    yield ""
    yield "| request | web process | Postgres | waits for Postgres | WAL |"
    yield "|---|--:|--:|--:|--:|"
    for each in costs.requests:
        yield (
            f"| {each.work.label} | {each.web:.1f} | {each.postgres:.1f} | {each.waits} |"
            f" {each.wal:,.0f} B |"
        )
    sizes = costs.sizes
    yield ""
    yield (
        f"Memory afterwards (PSS): {sizes.web:.0f} MiB for a web process, {sizes.worker:.0f} MiB"
        f" for a worker, and {sizes.connection:.0f} MiB for a connection of Postgres."
    )
    yield ""


def _format_connections(costs: CostResults) -> Iterator[str]:
    if not costs.connections:
        return
    yield "## Connections to Postgres"
    yield ""
    yield "| web processes | pool size | open | maximum |"
    yield "|--:|--:|---|--:|"
    for each in costs.connections:
        found = ", ".join(f"{count} {name}" for name, count in sorted(each.found.items()))
        given = f"| {each.processes} | {each.pool_size}"
        yield f"{given} | {each.total}: {found} | {each.most} |"
    yield ""


def _format_storage(costs: CostResults) -> Iterator[str]:
    if not costs.storage:
        return
    yield "## Storage"
    yield ""
    yield (
        f"Bytes for each object. {costs.storage[0].things:,} objects of each kind were stored. The"
        f" body of a single alert has {compute_body_size()} bytes. The last two columns show GiB "
        "for a"
        " million objects."
    )
    yield ""
    yield (
        "| object | tables | indexes | WAL | SQLite file | Postgres, a million |"
        " SQLite, a million |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for each in costs.storage:
        yield from _format_kind(each)
    yield ""


def _format_kind(cost: StorageCost) -> Iterator[str]:
    things = cost.things
    table = sum(each.table for each in cost.tables.values()) / things
    indexes = sum(each.indexes for each in cost.tables.values()) / things
    sqlite = cost.sqlite / things
    yield (
        f"| **{cost.name}** | {table:,.0f} | {indexes:,.0f} | {cost.wal / things:,.0f} |"
        f" {sqlite:,.0f} | {cost.postgres * _MILLION / _GIB:.2f} | {sqlite * _MILLION / _GIB:.2f} |"
    )
    for name, each in sorted(cost.tables.items()):
        own = (each.table / things, each.indexes / things)
        if sum(own) >= 1:
            yield f"| {name} | {own[0]:,.0f} | {own[1]:,.0f} | | | | |"


if __name__ == "__main__":
    try:
        main()
    except CannotMeasureError as error:
        sys.exit(str(error))
