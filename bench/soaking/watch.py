"""What a running service uses: memory, descriptors, threads, connections, and its tables."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.processes import family
from tests.support.service.live import LiveGatebell

_MIB = 2**20
_LARGEST_TABLES = 12
#: By a part of their commands; the first that fits. Others, such as those of Git, come and go.
_NAMES = {
    "web.server.serve": "supervisor",
    "web.server.watchdog": "watchdog",
    "web.jobs.worker": "worker",
    "apprise_child": "apprise",
    "gunicorn": "web",
}
_SIZES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


@dataclass(frozen=True, kw_only=True)
class Use:
    """What a process uses."""

    name: str
    resident_mib: float
    descriptors: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was seen at one time."""

    #: Since the beginning.
    seconds: float
    #: By the numbers of the processes.
    processes: Mapping[int, Use]
    #: To Postgres; 0 on SQLite.
    connections: int
    #: In MiB; on SQLite those of its files.
    tables: Mapping[str, float]


def look_at(live: LiveGatebell, seconds: float) -> Look:
    """Look at a service now."""
    on_postgres = not live.database_url.startswith("sqlite")
    connections, tables = _in_postgres(live.database_url) if on_postgres else (0, _files(live))
    return Look(
        seconds=seconds,
        processes=dict(_uses(live.pid)),
        connections=connections,
        tables=tables,
    )


def _uses(root: int) -> Iterator[tuple[int, Use]]:
    for each in family(root):
        name = next((name for part, name in _NAMES.items() if part in each.command), "")
        if name:
            with suppress(OSError):  # it has ended
                yield each.pid, _use(each.pid, name)


def _use(pid: int, name: str) -> Use:
    folder = Path("/proc") / str(pid)
    lines = (line.split() for line in (folder / "status").read_text(encoding="utf-8").splitlines())
    status = {words[0]: words[1] for words in lines if len(words) > 1}
    return Use(
        name=name,
        resident_mib=int(status["VmRSS:"]) / 1024,
        descriptors=sum(1 for _ in (folder / "fd").iterdir()),
        threads=int(status["Threads:"]),
    )


def _in_postgres(url: str) -> tuple[int, Mapping[str, float]]:
    with psycopg.connect(url) as connection:
        sizes: dict[str, int] = dict(connection.execute(_SIZES).fetchall())
        (count,) = connection.execute(_CONNECTIONS).fetchone() or (0,)
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_LARGEST_TABLES]
    # This one does not count.
    return count - 1, {name: sizes[name] / _MIB for name in largest}


def _files(live: LiveGatebell) -> Mapping[str, float]:
    files = live.instance_path.glob("gatebell.db*")
    return {each.name: each.stat().st_size / _MIB for each in files}
