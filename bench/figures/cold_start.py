"""Measures the time from `make run` to the first correct response."""

import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from itertools import product
from pathlib import Path
from time import monotonic

from bench.constant_rate import open_connection
from bench.durable_postgres import RunningPostgres
from bench.gatebell_seed import seed_gatebell
from bench.processes import measure_processor_seconds
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from tests.support.accounts.people import settings_of
from tests.support.service.live import LiveGatebell
from web.database.schema import migrate_to_newest

_MINIMAL_COUNTS = Counts(access_tokens=1, refresh_tokens=1, codes=1, device_codes=1)
_START_TIMEOUT_SECONDS = 60
#: Database types, and whether they have tables and data before the start.
COLD_START_KINDS = tuple(product(("SQLite", "Postgres"), (False, True)))


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """The cold starts with one type of database."""

    database: str
    #: True if the database had tables and data before the start.
    is_filled: bool
    #: Seconds until the first correct response, for each start.
    seconds: Sequence[float]
    #: Processor seconds of the service's processes until then.
    computed: Sequence[float]

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)


def measure_cold_starts(
    directory: Path, postgres: RunningPostgres, kinds: Sequence[tuple[str, bool]], starts: int
) -> Iterator[ColdStart]:
    """Start the service `starts` times with each type of database, empty or filled."""
    for database, is_filled in kinds:
        found = [
            _measure_start(
                directory / f"{database}-{is_filled}-{number}".lower(),
                postgres.databases.new_database() if database == "Postgres" else "",
                is_filled=is_filled,
            )
            for number in range(starts)
        ]
        seconds, computed = zip(*found, strict=True)
        start = ColdStart(
            database=database, is_filled=is_filled, seconds=seconds, computed=computed
        )
        kind = "filled" if is_filled else "empty"
        sys.stdout.write(f"  {database}, {kind}: {start.median:.1f} s\n")
        yield start


def _measure_start(directory: Path, database_url: str, *, is_filled: bool) -> tuple[float, float]:
    """Return the wall-clock seconds and the processor seconds until the first correct response.

    An empty database has no users, so the correct response is the sign-in page. With a filled
    database it is the response to a token check.
    """
    directory.mkdir(parents=True)
    live = LiveGatebell(instance_path=directory, database_url=database_url)
    path, headers = "/users/sign_in", {}
    if is_filled:
        migrate_to_newest(settings_of(live))
        seed, _ = seed_gatebell(live, _MINIMAL_COUNTS)
        live.close()
        path = "/oauth/token/info"
        headers = {"Authorization": f"Bearer {seed.access_tokens[0]}"}
    began = monotonic()
    live.start()
    try:
        while _request_status(live.url, path, headers) != HTTPStatus.OK:
            if monotonic() - began > _START_TIMEOUT_SECONDS:
                raise CannotMeasureError(f"no correct response from {path}")
        return monotonic() - began, measure_processor_seconds(live.pid)
    finally:
        live.stop()


def _request_status(url: str, path: str, headers: dict[str, str]) -> int:
    with closing(open_connection(url)) as connection:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
