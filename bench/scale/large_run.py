"""Fills a large database, measures it and writes docs/scale.md: `make bench-large`."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from app import create_app
from bench.alert_lists import say
from bench.machine import describe
from bench.scale.growth import growth
from bench.scale.large import LargeDatabase, connected, filled, large_server
from bench.scale.large_report import Measured, document
from bench.scale.large_tables import Sizes
from bench.scale.upkeep import jobs_at_work
from bench.scale.walk import Asked, Walk
from tests.support.service.live import close_app
from web.database.schema import migrate

_DOCUMENT = Path(__file__).parents[2] / "docs" / "scale.md"
_FEW = 10_000
#: Larger ones are only analyzed: to vacuum them takes longer than to fill them.
_VACUUMED = 3_000_000


def main() -> None:
    """Measure, and write the document."""
    asked = _arguments()
    with ExitStack() as stack:
        postgres, place = stack.enter_context(large_server(asked.directory))
        databases = [filled(postgres, place, _sizes(each)) for each in (_FEW, asked.alerts)]
        large, compared = databases[-1], databases
        if asked.larger:
            its_postgres, its_place = stack.enter_context(large_server(asked.larger))
            sizes = map(_sizes, (_FEW, asked.larger_alerts))
            compared = [filled(its_postgres, its_place, each) for each in sizes]
        for each in (*databases, *compared):
            # One that was filled by an earlier release.
            migrate(each.settings())
        before = _once(place / "never.json", lambda: _walked(large))
        growth_before = _once(place / "growth-never.json", lambda: growth(compared))
        analyzed = (*databases, *compared)
        _once(place / "analyzed.txt", lambda: [_analyze(each) for each in analyzed])
        growth_after = _once(place / "growth-analyzed.json", lambda: growth(compared))
        after = _once(place / "analyzed.json", lambda: _walked(large))
        measured = Measured(
            database=large,
            before=[Asked(**each) for each in before],
            after=[Asked(**each) for each in after],
            compared=[each.sizes.alerts for each in compared],
            growth_before=growth_before,
            growth_after=growth_after,
            machine=_machine(large.url),
        )
        asked.output.write_text(document(measured), encoding="utf-8")
    say(f"{asked.output} is written")


def _once(file: Path, measure: Callable[[], Any]) -> Any:
    """Measure, or read what an earlier run found that was interrupted after it."""
    if not file.exists():
        began = perf_counter()
        found = measure()
        file.write_text(json.dumps(found), encoding="utf-8")
        say(f"{file.stem} in {perf_counter() - began:.0f} s")
    return json.loads(file.read_text(encoding="utf-8"))


def _walked(database: LargeDatabase) -> Sequence[dict[str, Any]]:
    """Walk, and run the jobs."""
    app = create_app(database.settings())
    try:
        walk = Walk(app, database)
        found = (*walk.all(), *jobs_at_work(app, database, walk))
        return [asdict(each) for each in found]
    finally:
        close_app(app)


def _analyze(database: LargeDatabase) -> str:
    with connected(database.url) as connection:
        connection.execute("ANALYZE" if database.sizes.alerts > _VACUUMED else "VACUUM (ANALYZE)")
    return database.url


def _machine(url: str) -> str:
    found = describe(url)
    busy, *_ = os.getloadavg()
    return (
        f"{found.cores} cores ({found.processor}, {found.kernel}, Python {found.python}), which"
        f" were shared with other work (a load of {busy:.0f} at the end)"
    )


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
    parser.add_argument("--alerts", type=int, default=10_000_000, help="other tables follow")
    parser.add_argument(
        "--larger", type=Path, help="keep there a larger one, whose requests are compared instead"
    )
    parser.add_argument("--larger-alerts", type=int, default=10_000_000, help="its size")
    parser.add_argument("--directory", type=Path, help="keep the databases there")
    parser.add_argument("--output", type=Path, default=_DOCUMENT)
    return parser.parse_args(sys.argv[1:])


if __name__ == "__main__":
    main()
