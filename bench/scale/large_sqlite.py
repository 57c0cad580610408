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

from bench.alert_lists import print_progress
from bench.scale.large import (
    LargeDatabase,
    find_first_environment_id,
    find_first_ids,
    find_ids_of_commands,
    get_filled_database,
)
from bench.scale.large_tables import TableRowCounts
from bench.scale.sqlite_tables import (
    SQLITE_DEPENDENT_TABLES,
    SQLITE_FOUNDATION_TABLES,
    SQLITE_LARGE_TABLES,
)
from domain.core.clock import read_system_clock

#: Pragmas for a database that is filled once by a single connection, and deleted if that fails.
_FILL_PRAGMAS = (
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


def get_filled_sqlite(place: Path, sizes: TableRowCounts) -> LargeDatabase:
    """Return the database of these sizes, and fill it unless it is already filled."""
    file = place / f"sqlite-{sizes.alerts}.db"
    return get_filled_database(place, sizes, url=lambda: f"sqlite:///{file}", fill=_fill_tables)


def _fill_tables(database: LargeDatabase) -> LargeDatabase:
    began = perf_counter()
    with open_database(database.url) as connection:
        for pragma in _FILL_PRAGMAS:
            connection.execute(pragma).fetchall()
        connection.create_function("sha256", 1, _sha256, deterministic=True)
        connection.create_function("md5", 1, _md5, deterministic=True)
        connection.execute("BEGIN")
        ids = {
            "now": int(read_system_clock().timestamp()),
            **dict(find_ids_of_commands(connection)),
        }
        tables = [*SQLITE_FOUNDATION_TABLES, None, *SQLITE_DEPENDENT_TABLES, *SQLITE_LARGE_TABLES]
        for table in tables:
            if table is None:
                ids |= find_first_ids(connection)
                continue
            if table.name == "deployments":  # triggers have created the environments of the alerts
                ids["environment"] = find_first_environment_id(connection)
            since = perf_counter()
            stored = connection.execute(table.statement(database.sizes, ids)).rowcount
            print_progress(f"  {table.name}: {stored:,} in {perf_counter() - since:.0f} s")
        for statement in _AFTERWARDS:
            connection.execute(statement)
        connection.execute("COMMIT")
    return replace(database, ids=ids, fill_seconds=perf_counter() - began)


def _sha256(value: object) -> bytes:
    return hashlib.sha256(str(value).encode()).digest()


def _md5(value: object) -> str:
    return hashlib.md5(str(value).encode(), usedforsecurity=False).hexdigest()


@contextmanager
def open_database(url: str) -> Iterator[sqlite3.Connection]:
    """Open a database in autocommit mode, without the service."""
    file = make_url(url).database or ""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def get_file_size(url: str) -> int:
    """Return the file size of a database."""
    return Path(make_url(url).database or "").stat().st_size


def analyze_database(url: str) -> None:
    """Collect SQLite's statistics about the values of each index."""
    with open_database(url) as connection:
        connection.execute("ANALYZE")


def explain_sqlite_query(url: str, query: str, values: Any) -> str:
    """Return SQLite's query plan: the full scans and sorts, or all steps if there are none."""
    with open_database(url) as connection:
        steps = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    told: Sequence[str] = [step[3] for step in steps]
    slow = [each for each in told if each.startswith(("SCAN", "USE TEMP"))]
    return "; ".join(dict.fromkeys(slow or told))
