"""Numbers of Postgres connections that a service keeps and that it needs at most."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg
import requests

from tests.support.accounts.people import make_project, make_user, sign_in
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from web.server.heavy_requests import count_heavy_processes

_PROCESSES = 2
#: Maximum number of worker connections: the scheduler has one, and the periodic jobs share four.
_MAX_WORKER_CONNECTIONS = 24
#: Number of requests per connection, so that every connection handles both kinds of work.
_REQUESTS_PER_CONNECTION = 12
_COUNT_QUERY = """
SELECT application_name FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, kw_only=True)
class ConnectionCount:
    """The connections to Postgres after a load on all of them."""

    processes: int
    pool_size: int
    #: Number of connections by application name.
    found: dict[str, int]

    @property
    def total(self) -> int:
        """Total number of connections."""
        return sum(self.found.values())

    @property
    def most(self) -> int:
        """Maximum according to the formula in docs/capacity.md."""
        return compute_max_connections(self.processes, self.pool_size)


def compute_max_connections(processes: int, pool_size: int) -> int:
    """Return the maximum number of connections of a host.

    Each web process has a pool for the hot paths and one for pages. It needs one more connection to
    check Postgres, and another from time to time to report that it is running. Heavy processes run
    the same application.
    """
    application_processes = processes + count_heavy_processes(processes)
    return application_processes * (pool_size * 2 + 2) + _MAX_WORKER_CONNECTIONS


def measure_connection_counts(
    pool_sizes: Sequence[int], directory: Path, database_urls: Sequence[str]
) -> list[ConnectionCount]:
    """Start the service with each of these pool sizes, and load all of its connections."""
    return [
        _count_connections(number, directory / f"pool-{number}", url)
        for number, url in zip(pool_sizes, database_urls, strict=True)
    ]


def _count_connections(pool_size: int, directory: Path, database_url: str) -> ConnectionCount:
    directory.mkdir(parents=True)
    live = LiveGatebell(
        instance_path=directory,
        database_url=database_url,
        WEB_CONCURRENCY=str(_PROCESSES),
        DATABASE_POOL_SIZE=str(pool_size),
    )
    live.start()
    try:
        alice = make_user(live)
        endpoint = connect(live, make_project(live, alice))
        cookies = sign_in(live, alice).cookies.get_dict()
        _use_all_connections(live, endpoint, cookies, pool_size)
        with psycopg.connect(database_url) as connection:
            found = Counter(name for (name,) in connection.execute(_COUNT_QUERY))
    finally:
        live.stop()
    return ConnectionCount(processes=_PROCESSES, pool_size=pool_size, found=dict(found))


def _use_all_connections(
    live: LiveGatebell, endpoint: Endpoint, cookies: dict[str, str], pool_size: int
) -> None:
    def visit(number: int) -> None:
        endpoint.accepted(title=f"Disk {number} is full")
        requests.get(f"{live.url}/{endpoint.project}/-/alerts", cookies=cookies, timeout=60)

    at_once = _PROCESSES * pool_size * 2
    with ThreadPoolExecutor(at_once) as visitors:
        list(visitors.map(visit, range(at_once * _REQUESTS_PER_CONNECTION)))
