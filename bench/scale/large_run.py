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
from bench.alert_lists import say
from bench.machine import describe, noise, wait_for_calm
from bench.scale.growth import TIMES, growth, processor_growth, start_seconds
from bench.scale.large import LargeDatabase, connected, fill_postgres, filled, large_server
from bench.scale.large_report import Measured, analyzing, document
from bench.scale.large_sqlite import analyze, bytes_of, filled_sqlite
from bench.scale.large_tables import Sizes
from bench.scale.sqlite_report import MeasuredSqlite, section_of, sqlite_section, with_section
from bench.scale.upkeep import jobs_at_work
from bench.scale.walk import MOST_WAYS, Asked, Walk
from bench.scale.writers import Waits, writers
from domain.core.clock import system_clock
from tests.support.database.postgres import Postgres
from tests.support.service.live import close_app
from web.database.schema import migrate

_DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "scale.md"
_FEW = 10_000
_STARTS = 5
#: Maximum time in seconds for the machine to become idle after the fill.
_PATIENCE_SECONDS = 60.0
#: Duration of the measurement for each number of web processes in seconds.
_WRITING_SECONDS = 20.0


def main() -> None:
    """Run the measurements and write the document."""
    asked = _arguments()
    if asked.sqlite:
        measure_sqlite(asked)
    else:
        measure_postgres(asked)
    say(f"The document is in {asked.output}.")


def measure_postgres(asked: Namespace) -> None:
    """Measure Postgres, and write the document except for its last section."""
    with ExitStack() as stack:
        postgres, place = stack.enter_context(large_server(asked.directory))
        databases = [_on_postgres(postgres, place, each) for each in (_FEW, asked.alerts)]
        large, compared = databases[-1], databases
        if asked.larger:
            its_postgres, its_place = stack.enter_context(large_server(asked.larger))
            sizes = (_FEW, asked.larger_alerts)
            compared = [_on_postgres(its_postgres, its_place, each) for each in sizes]
        for each in (*databases, *compared):
            # An earlier release may have filled the database.
            migrate(each.settings())
        before = _once(place / "never.json", lambda: _walked(large, asked.ways))
        busy = _once(place / "busy.json", partial(wait_for_calm, _PATIENCE_SECONDS))
        compare = partial(growth, compared, times=asked.times)
        growth_before = _once(place / "growth-never.json", compare)
        analyzed = (*databases, *compared)
        _once(place / "analyzed.txt", lambda: [_analyze(each) for each in analyzed])
        growth_after = _once(place / "growth-analyzed.json", compare)
        after = _once(place / "analyzed.json", lambda: _walked(large, asked.ways))
        measured = Measured(
            database=large,
            before=[Asked(**each) for each in before],
            after=[Asked(**each) for each in after],
            compared=[each.sizes.alerts for each in compared],
            growth_before=growth_before,
            growth_after=growth_after,
            times=asked.times,
            machine=_machine(large.url),
            noise=noise(busy),
        )
        written = asked.output.read_text(encoding="utf-8") if asked.output.exists() else ""
        text = with_section(document(measured), sqlite_section(written))
        asked.output.write_text(text, encoding="utf-8")


def _on_postgres(postgres: Postgres, place: Path, alerts: int) -> LargeDatabase:
    return filled(place, _sizes(alerts), url=postgres.new_database, fill=fill_postgres)


def measure_sqlite(asked: Namespace) -> None:
    """Measure SQLite, and write the last section of the document."""
    with ExitStack() as stack:
        place = asked.directory or Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-")))
        place.mkdir(parents=True, exist_ok=True)
        databases = [filled_sqlite(place, _sizes(each)) for each in (_FEW, asked.alerts)]
        large = databases[-1]
        for each in databases:
            migrate(each.settings())
        busy = _once(place / "busy.json", partial(wait_for_calm, _PATIENCE_SECONDS))
        compare = partial(processor_growth, databases, times=asked.times)
        starts = _once(place / "starts.json", lambda: start_seconds(databases, times=_STARTS))
        growth_before = _once(place / "growth-never.json", compare)
        # The walk runs only before the analysis, because the service never analyzes SQLite.
        walked = _once(place / "never.json", lambda: _walked(large, asked.ways))
        for each in databases:
            analyze(each.url)
        growth_after = _once(place / "growth-analyzed.json", compare)
        waits = _once(place / "writers.json", lambda: _waits(place))
        measured = Measured(
            database=large,
            before=[Asked(**each) for each in walked],
            after=(),
            compared=[each.sizes.alerts for each in databases],
            growth_before=growth_before,
            growth_after=growth_after,
            times=asked.times,
            machine=_machine(""),
            noise=noise(busy),
        )
        found = MeasuredSqlite(
            measured=measured,
            ways=asked.ways,
            size=bytes_of(large.url),
            starts=starts,
            seconds=_WRITING_SECONDS,
            writers={int(each): [Waits(**one) for one in kinds] for each, kinds in waits.items()},
            day=f"{system_clock():%Y-%m-%d}",
        )
        text = with_section(asked.output.read_text(encoding="utf-8"), section_of(found))
        asked.output.write_text(text, encoding="utf-8")


def _waits(place: Path) -> dict[int, list[dict[str, Any]]]:
    """Measure requests during concurrent writes, with one web process and with two."""
    return {
        processes: [
            asdict(each)
            for each in writers(
                place / f"writers-{processes}", web_processes=processes, seconds=_WRITING_SECONDS
            )
        ]
        for processes in (1, 2)
    }


def _once(file: Path, measure: Callable[[], Any]) -> Any:
    """Run a measurement, or return its stored result from an earlier, interrupted run."""
    if not file.exists():
        began = perf_counter()
        found = measure()
        file.write_text(json.dumps(found), encoding="utf-8")
        say(f"{file.stem} in {perf_counter() - began:.0f} s")
    return json.loads(file.read_text(encoding="utf-8"))


def _walked(database: LargeDatabase, ways: int) -> Sequence[dict[str, Any]]:
    """Request all pages and run the jobs."""
    app = create_app(database.settings())
    try:
        walk = Walk(app, database, ways=ways)
        found = (*walk.all(), *jobs_at_work(app, database, walk))
        return [asdict(each) for each in found]
    finally:
        close_app(app)


def _analyze(database: LargeDatabase) -> str:
    with connected(database.url) as connection:
        connection.execute(analyzing(database.sizes))
    return database.url


def _machine(url: str) -> str:
    found = describe(url)
    return f"{found.cores} cores ({found.processor}, {found.kernel}, Python {found.python})"


def _sizes(alerts: int) -> Sizes:
    return Sizes(
        alerts=alerts,
        deliveries=3 * alerts,
        users=alerts // 10,
        tokens=alerts // 2,
        small=min(3_000, max(alerts // 1_000, 10)),
    )


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--sqlite", action="store_true", help="use SQLite instead of Postgres")
    parser.add_argument(
        "--alerts",
        type=int,
        help="number of alerts, which determines the size of other tables (10000000; 1000000 on"
        " SQLite)",
    )
    parser.add_argument(
        "--times", type=int, default=TIMES, help=f"requests of each kind to compare ({TIMES})"
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
        "--ways", type=int, default=MOST_WAYS, help=f"maximum variants of each URL ({MOST_WAYS})"
    )
    parser.add_argument("--directory", type=Path, help="directory in which databases are kept")
    parser.add_argument("--output", type=Path, default=_DOCUMENT, help="file of the document")
    asked = parser.parse_args(sys.argv[1:])
    asked.alerts = asked.alerts or (1_000_000 if asked.sqlite else 10_000_000)
    return asked


if __name__ == "__main__":
    main()
