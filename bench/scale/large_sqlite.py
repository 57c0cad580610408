"""Fills SQLite with the same data as `large.py`, and examines its query plans.

Rows are stored with all migrations applied: indexes are maintained, and triggers fill the search
tables, daily counts and environments.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from sqlalchemy.engine import make_url

from bench.alert_lists import say
from bench.scale.large import (
    LargeDatabase,
    filled,
    first_environment,
    first_ids,
    ids_of_commands,
)
from bench.scale.large_tables import Sizes
from bench.scale.sqlite_tables import (
    FOUNDATIONS_OF_SQLITE,
    LARGE_OF_SQLITE,
    NEXT_OF_SQLITE,
)
from domain.core.clock import system_clock

#: Pragmas for a database that is filled once by a single connection, and deleted if that fails.
_QUICK = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA cache_size = -1000000",
)
_AFTERWARDS = (
    # The followers of alerts do not need the changes of old alerts.
    "DELETE FROM alert_changes",
    """
    INSERT INTO alert_counters (project_id, last_iid)
    SELECT project_id, max(iid) FROM alerts GROUP BY project_id
    ON CONFLICT (project_id) DO UPDATE SET last_iid = excluded.last_iid
    """,
)


def filled_sqlite(place: Path, sizes: Sizes) -> LargeDatabase:
    """Return the database of these sizes, and fill it unless it is already filled."""
    file = place / f"sqlite-{sizes.alerts}.db"
    return filled(place, sizes, url=lambda: f"sqlite:///{file}", fill=_fill)


def _fill(database: LargeDatabase) -> LargeDatabase:
    began = perf_counter()
    with opened(database.url) as connection:
        for pragma in _QUICK:
            connection.execute(pragma).fetchall()
        connection.create_function("sha256", 1, _sha256, deterministic=True)
        connection.create_function("md5", 1, _md5, deterministic=True)
        connection.execute("BEGIN")
        ids = {"now": int(system_clock().timestamp()), **dict(ids_of_commands(connection))}
        tables = [*FOUNDATIONS_OF_SQLITE, None, *NEXT_OF_SQLITE, *LARGE_OF_SQLITE]
        for table in tables:
            if table is None:
                ids |= first_ids(connection)
                continue
            if table.name == "deployments":  # triggers have created the environments of the alerts
                ids["environment"] = first_environment(connection)
            since = perf_counter()
            stored = connection.execute(table.statement(database.sizes, ids)).rowcount
            say(f"  {table.name}: {stored:,} in {perf_counter() - since:.0f} s")
        for statement in _AFTERWARDS:
            connection.execute(statement)
        connection.execute("COMMIT")
    return replace(database, ids=ids, fill_seconds=perf_counter() - began)


def _sha256(value: object) -> bytes:
    return hashlib.sha256(str(value).encode()).digest()


def _md5(value: object) -> str:
    return hashlib.md5(str(value).encode(), usedforsecurity=False).hexdigest()


@contextmanager
def opened(url: str) -> Iterator[sqlite3.Connection]:
    """Open a database in autocommit mode, without the service."""
    file = make_url(url).database or ""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def bytes_of(url: str) -> int:
    """Return the file size of a database."""
    return Path(make_url(url).database or "").stat().st_size


def analyze(url: str) -> None:
    """Collect SQLite's statistics about the values of each index."""
    with opened(url) as connection:
        connection.execute("ANALYZE")


def plan_of(url: str, query: str, values: Any) -> str:
    """Return SQLite's query plan: the full scans and sorts, or all steps if there are none."""
    with opened(url) as connection:
        steps = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    told: Sequence[str] = [step[3] for step in steps]
    slow = [each for each in told if each.startswith(("SCAN", "USE TEMP"))]
    return "; ".join(dict.fromkeys(slow or told))
