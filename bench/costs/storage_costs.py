"""Disk space of each kind of object, stored as the service stores it.

The objects are stored one after the other by the app in this process, in a new database of each
type. The indexes are therefore as full as in production, and not as full as after a bulk load.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from flask import Flask

from app import create_app
from bench.alert_bodies import build_generic_alert, build_metrics_webhook
from bench.alert_lists import print_progress
from bench.gatebell_seed import seed_gatebell
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from bench.workloads import METRICS_ALERTS
from tests.support.accounts.people import make_project, make_user, settings_of
from tests.support.alerts.senders import JSON, Endpoint, connect
from tests.support.service.live import LiveGatebell, close_app
from web.database.schema import migrate_to_newest
from web.jobs.retention import update_daily_counts

_SIZES_QUERY = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid), reltuples::bigint
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """The size of a table, including TOAST, and of its indexes in bytes."""

    rows: int = 0
    table: int = 0
    indexes: int = 0

    def since(self, earlier: "TableSize") -> "TableSize":
        """Return the difference to an earlier size."""
        return TableSize(
            rows=self.rows - earlier.rows,
            table=self.table - earlier.table,
            indexes=self.indexes - earlier.indexes,
        )


@dataclass(frozen=True, kw_only=True)
class StorageCost:
    """The disk space that objects of one kind need."""

    name: str
    things: int
    #: Growth of each Postgres table. Tables that have not grown are left out.
    tables: Mapping[str, TableSize]
    #: Bytes written to Postgres' write-ahead log.
    wal: int
    #: Growth of the SQLite file in bytes.
    sqlite: int

    @property
    def postgres(self) -> float:
        """Bytes of tables and indexes per object."""
        grown = sum(each.table + each.indexes for each in self.tables.values())
        return grown / self.things


@dataclass(frozen=True, kw_only=True)
class _MeasuredDatabase:
    """A new database, with a sender of each kind."""

    live: LiveGatebell
    app: Flask
    generic: Endpoint
    metrics: Endpoint

    def post(self, endpoint: Endpoint, body: str) -> None:
        """Send a body to the app in this process."""
        headers = {"Content-Type": JSON, **endpoint.bearer}
        answer = self.app.test_client().post(endpoint.path, headers=headers, data=body)
        if answer.status_code != 200:  # noqa: PLR2004 - accepted
            raise CannotMeasureError(answer.text)


@dataclass(frozen=True)
class _ObjectKind:
    """A kind of object, and the function that stores a number of them."""

    name: str
    store: Callable[[_MeasuredDatabase, int], None]
    #: Number of objects that a request stores.
    at_once: int = 1


def _store_new_alerts(instance: _MeasuredDatabase, count: int) -> None:
    for number in range(count):
        instance.post(instance.generic, build_generic_alert(f"Disk full {number:017d}"))


def _store_reports(instance: _MeasuredDatabase, count: int) -> None:
    for number in range(count):
        instance.post(instance.generic, build_generic_alert(f"Disk full {number % 100:017d}"))


def _store_webhooks(instance: _MeasuredDatabase, count: int) -> None:
    for number in range(count // METRICS_ALERTS):
        instance.post(instance.metrics, build_metrics_webhook(METRICS_ALERTS, f"{number:017d}"))


def _store_token_pairs(instance: _MeasuredDatabase, count: int) -> None:
    seed_gatebell(
        instance.live, Counts(access_tokens=count, refresh_tokens=1, codes=1, device_codes=1)
    )


OBJECT_KINDS: Sequence[_ObjectKind] = (
    _ObjectKind("a new alert in a webhook of its own", _store_new_alerts),
    _ObjectKind("another report of an open alert", _store_reports),
    _ObjectKind(f"a new alert in a webhook of {METRICS_ALERTS}", _store_webhooks, METRICS_ALERTS),
    _ObjectKind("a pair of tokens with its authorization", _store_token_pairs),
)


def measure_storage_costs(things: int, directory: Path, database_url: str) -> Sequence[StorageCost]:
    """Store objects of each kind in both types of database."""
    sqlite = _create_database(directory / "sqlite", "")
    postgres = _create_database(directory / "postgres", database_url)
    try:
        return [_measure_cost(kind, things, sqlite, postgres) for kind in OBJECT_KINDS]
    finally:
        close_app(sqlite.app)
        close_app(postgres.app)


def compute_body_size() -> int:
    """Return the body size in bytes of an alert that is sent on its own."""
    return len(build_generic_alert(f"Disk full {0:017d}"))


def _create_database(directory: Path, database_url: str) -> _MeasuredDatabase:
    directory.mkdir(parents=True)
    live = LiveGatebell(instance_path=directory, database_url=database_url)
    migrate_to_newest(settings_of(live))
    project = make_project(live, make_user(live))
    return _MeasuredDatabase(
        live=live,
        app=create_app(settings_of(live)),
        generic=connect(live, project),
        metrics=connect(live, project, kind="prometheus", name="Metrics"),
    )


def _measure_cost(
    kind: _ObjectKind, things: int, sqlite: _MeasuredDatabase, postgres: _MeasuredDatabase
) -> StorageCost:
    print_progress(f"  {kind.name}")
    count = things // kind.at_once * kind.at_once
    size, sizes, wal = (
        _read_file_size(sqlite),
        _read_table_sizes(postgres),
        _read_wal_bytes(postgres),
    )
    kind.store(sqlite, count)
    kind.store(postgres, count)
    wal = _read_wal_bytes(postgres) - wal
    grown = {name: each.since(sizes[name]) for name, each in _read_table_sizes(postgres).items()}
    return StorageCost(
        name=kind.name,
        things=count,
        tables={name: each for name, each in grown.items() if each.table + each.indexes > 0},
        wal=wal,
        sqlite=_read_file_size(sqlite) - size,
    )


def _read_table_sizes(instance: _MeasuredDatabase) -> Mapping[str, TableSize]:
    # These steps are the work of a worker and of autovacuum in production.
    update_daily_counts(settings_of(instance.live))
    with psycopg.connect(instance.live.database_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        rows = connection.execute(_SIZES_QUERY).fetchall()
    return {
        name: TableSize(rows=max(count, 0), table=table, indexes=indexes)
        for name, table, indexes, count in rows
    }


def _read_wal_bytes(instance: _MeasuredDatabase) -> int:
    with psycopg.connect(instance.live.database_url) as connection:
        row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    return int(row[0]) if row else 0


def _read_file_size(instance: _MeasuredDatabase) -> int:
    file = instance.live.instance_path / "gatebell.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size
