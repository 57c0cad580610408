"""Fills a large database, measures it and writes docs/evidence/scale.md: `make bench-large`.

With `--sqlite` it fills SQLite, and writes the last section of the document.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from app import create_app
from bench.alert_lists import print_progress
from bench.machine import describe_machine, describe_noise, wait_for_calm
from bench.scale.growth import (
    REQUEST_COUNT,
    measure_growth,
    measure_processor_growth,
    measure_start_seconds,
)
from bench.scale.large import (
    LargeDatabase,
    connect_to_database,
    fill_postgres,
    get_filled_database,
    start_large_server,
)
from bench.scale.large_report import LargeDatabaseResults, build_analyze_statement, build_document
from bench.scale.large_sqlite import analyze_database, get_file_size, get_filled_sqlite
from bench.scale.large_tables import TableRowCounts
from bench.scale.sqlite_report import (
    SqliteResults,
    find_sqlite_section,
    format_section,
    replace_section,
)
from bench.scale.upkeep import measure_jobs
from bench.scale.walk import MAX_VARIANTS, PageWalk, WalkedRequest
from bench.scale.writers import WriterWaits, measure_writers
from domain.core.clock import read_system_clock
from tests.support.database.postgres import Postgres
from tests.support.service.live import close_app
from web.database.schema import migrate_to_newest

_DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "scale.md"
_FEW_ALERTS = 10_000
_START_COUNT = 5
#: Maximum time in seconds for the machine to become idle after the fill.
_CALM_TIMEOUT_SECONDS = 60.0
#: Duration of the measurement for each number of web processes in seconds.
_WRITING_SECONDS = 20.0


def main() -> None:
    """Run the measurements and write the document."""
    asked = _read_arguments()
    if asked.sqlite:
        measure_sqlite(asked)
    else:
        measure_postgres(asked)
    print_progress(f"The document is in {asked.output}.")


def measure_postgres(asked: Namespace) -> None:
    """Measure Postgres, and write the document except for its last section."""
    with ExitStack() as stack:
        postgres, place = stack.enter_context(start_large_server(asked.directory))
        databases = [
            _get_postgres_database(postgres, place, each) for each in (_FEW_ALERTS, asked.alerts)
        ]
        large, compared = databases[-1], databases
        if asked.larger:
            its_postgres, its_place = stack.enter_context(start_large_server(asked.larger))
            sizes = (_FEW_ALERTS, asked.larger_alerts)
            compared = [_get_postgres_database(its_postgres, its_place, each) for each in sizes]
        for each in (*databases, *compared):
            # An earlier release may have filled the database.
            migrate_to_newest(each.settings())
        before = _run_or_load(place / "never.json", lambda: _walk_pages(large, asked.ways))
        busy = _run_or_load(place / "busy.json", partial(wait_for_calm, _CALM_TIMEOUT_SECONDS))
        compare = partial(measure_growth, compared, times=asked.times)
        growth_before = _run_or_load(place / "growth-never.json", compare)
        analyzed = (*databases, *compared)
        _run_or_load(place / "analyzed.txt", lambda: [_analyze(each) for each in analyzed])
        growth_after = _run_or_load(place / "growth-analyzed.json", compare)
        after = _run_or_load(place / "analyzed.json", lambda: _walk_pages(large, asked.ways))
        measured = LargeDatabaseResults(
            database=large,
            before=[WalkedRequest(**each) for each in before],
            after=[WalkedRequest(**each) for each in after],
            compared=[each.sizes.alerts for each in compared],
            growth_before=growth_before,
            growth_after=growth_after,
            times=asked.times,
            machine=_describe_machine(large.url),
            noise=describe_noise(busy),
        )
        written = asked.output.read_text(encoding="utf-8") if asked.output.exists() else ""
        text = replace_section(build_document(measured), find_sqlite_section(written))
        asked.output.write_text(text, encoding="utf-8")


def _get_postgres_database(postgres: Postgres, place: Path, alerts: int) -> LargeDatabase:
    return get_filled_database(
        place, _build_sizes(alerts), url=postgres.new_database, fill=fill_postgres
    )


def measure_sqlite(asked: Namespace) -> None:
    """Measure SQLite, and write the last section of the document."""
    with ExitStack() as stack:
        place = asked.directory or Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-")))
        place.mkdir(parents=True, exist_ok=True)
        databases = [
            get_filled_sqlite(place, _build_sizes(each)) for each in (_FEW_ALERTS, asked.alerts)
        ]
        large = databases[-1]
        for each in databases:
            migrate_to_newest(each.settings())
        busy = _run_or_load(place / "busy.json", partial(wait_for_calm, _CALM_TIMEOUT_SECONDS))
        compare = partial(measure_processor_growth, databases, times=asked.times)
        starts = _run_or_load(
            place / "starts.json", lambda: measure_start_seconds(databases, times=_START_COUNT)
        )
        growth_before = _run_or_load(place / "growth-never.json", compare)
        # The walk runs only before the analysis, because the service never analyzes SQLite.
        walked = _run_or_load(place / "never.json", lambda: _walk_pages(large, asked.ways))
        for each in databases:
            analyze_database(each.url)
        growth_after = _run_or_load(place / "growth-analyzed.json", compare)
        waits = _run_or_load(place / "writers.json", lambda: _measure_waits(place))
        measured = LargeDatabaseResults(
            database=large,
            before=[WalkedRequest(**each) for each in walked],
            after=(),
            compared=[each.sizes.alerts for each in databases],
            growth_before=growth_before,
            growth_after=growth_after,
            times=asked.times,
            machine=_describe_machine(""),
            noise=describe_noise(busy),
        )
        found = SqliteResults(
            measured=measured,
            ways=asked.ways,
            size=get_file_size(large.url),
            starts=starts,
            seconds=_WRITING_SECONDS,
            writers={
                int(each): [WriterWaits(**one) for one in kinds] for each, kinds in waits.items()
            },
            day=f"{read_system_clock():%Y-%m-%d}",
        )
        text = replace_section(asked.output.read_text(encoding="utf-8"), format_section(found))
        asked.output.write_text(text, encoding="utf-8")


def _measure_waits(place: Path) -> dict[int, list[dict[str, Any]]]:
    """Measure requests during concurrent writes, with one web process and with two."""
    return {
        processes: [
            asdict(each)
            for each in measure_writers(
                place / f"writers-{processes}", web_processes=processes, seconds=_WRITING_SECONDS
            )
        ]
        for processes in (1, 2)
    }


def _run_or_load(file: Path, measure: Callable[[], Any]) -> Any:
    """Run a measurement, or return its stored result from an earlier, interrupted run."""
    if not file.exists():
        began = perf_counter()
        found = measure()
        file.write_text(json.dumps(found), encoding="utf-8")
        print_progress(f"{file.stem} in {perf_counter() - began:.0f} s")
    return json.loads(file.read_text(encoding="utf-8"))


def _walk_pages(database: LargeDatabase, ways: int) -> Sequence[dict[str, Any]]:
    """Request all pages and run the jobs."""
    app = create_app(database.settings())
    try:
        walk = PageWalk(app, database, ways=ways)
        found = (*walk.all(), *measure_jobs(app, database, walk))
        return [asdict(each) for each in found]
    finally:
        close_app(app)


def _analyze(database: LargeDatabase) -> str:
    with connect_to_database(database.url) as connection:
        connection.execute(build_analyze_statement(database.sizes))
    return database.url


def _describe_machine(url: str) -> str:
    found = describe_machine(url)
    return f"{found.cores} cores ({found.processor}, {found.kernel}, Python {found.python})"


def _build_sizes(alerts: int) -> TableRowCounts:
    return TableRowCounts(
        alerts=alerts,
        deliveries=3 * alerts,
        users=alerts // 10,
        tokens=alerts // 2,
        small=min(3_000, max(alerts // 1_000, 10)),
    )


def _read_arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--sqlite", action="store_true", help="use SQLite instead of Postgres")
    parser.add_argument(
        "--alerts",
        type=int,
        help="number of alerts, which determines the size of other tables (10000000; 1000000 on"
        " SQLite)",
    )
    parser.add_argument(
        "--times",
        type=int,
        default=REQUEST_COUNT,
        help=f"requests of each kind to compare ({REQUEST_COUNT})",
    )
    parser.add_argument(
        "--larger", type=Path, help="directory of a larger database, to compare requests with"
    )
    parser.add_argument(
        "--larger-alerts",
        type=int,
        default=10_000_000,
        help="number of alerts in the larger database (10000000)",
    )
    parser.add_argument(
        "--ways",
        type=int,
        default=MAX_VARIANTS,
        help=f"maximum variants of each URL ({MAX_VARIANTS})",
    )
    parser.add_argument("--directory", type=Path, help="directory in which databases are kept")
    parser.add_argument("--output", type=Path, default=_DOCUMENT, help="file of the document")
    asked = parser.parse_args(sys.argv[1:])
    asked.alerts = asked.alerts or (1_000_000 if asked.sqlite else 10_000_000)
    return asked


if __name__ == "__main__":
    main()
