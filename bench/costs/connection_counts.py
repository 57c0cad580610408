"""How many connections to Postgres a service keeps, and how many it takes at most."""

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

_PROCESSES = 2
#: Of the worker, at most: its scheduler has one, the periodic jobs share four.
_OF_THE_WORKER = 24
#: So many requests for each connection, so that all have had work of both kinds.
_TURNS = 12
_COUNT = """
SELECT application_name FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, kw_only=True)
class ConnectionCount:
    """What is connected to Postgres after a load on all connections."""

    processes: int
    pool_size: int
    #: By what they call themselves.
    found: dict[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.found.values())

    @property
    def most(self) -> int:
        """What the formula of docs/capacity.md allows."""
        return most_connections(self.processes, self.pool_size)


def most_connections(processes: int, pool_size: int) -> int:
    """Return how many connections a host may have at once.

    Each web process has a pool for the hot paths and one for pages, one more to ask whether
    Postgres answers, and one now and then to say that it is there.
    """
    return processes * (pool_size * 2 + 2) + _OF_THE_WORKER


def connection_counts(
    pool_sizes: Sequence[int], directory: Path, database_urls: Sequence[str]
) -> list[ConnectionCount]:
    """Start the service with a pool of such a size each time, and give all of it work."""
    return [
        _counted(number, directory / f"pool-{number}", url)
        for number, url in zip(pool_sizes, database_urls, strict=True)
    ]


def _counted(pool_size: int, directory: Path, database_url: str) -> ConnectionCount:
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
        _use_all(live, endpoint, cookies, pool_size)
        with psycopg.connect(database_url) as connection:
            found = Counter(name for (name,) in connection.execute(_COUNT))
    finally:
        live.stop()
    return ConnectionCount(processes=_PROCESSES, pool_size=pool_size, found=dict(found))


def _use_all(
    live: LiveGatebell, endpoint: Endpoint, cookies: dict[str, str], pool_size: int
) -> None:
    def visit(number: int) -> None:
        endpoint.accepted(title=f"Disk {number} is full")
        requests.get(f"{live.url}/{endpoint.project}/-/alerts", cookies=cookies, timeout=60)

    at_once = _PROCESSES * pool_size * 2
    with ThreadPoolExecutor(at_once) as visitors:
        list(visitors.map(visit, range(at_once * _TURNS)))
